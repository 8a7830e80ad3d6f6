/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that speaks NET frames itself. FAKE "net": FAKE_DATA is a name, and a port's place
 * among its ports, "here.test 0"; it says hello there and prints what comes back. FAKE
 * "net-WHAT": what no guest of ours would say.
 */
#ifndef SKILLVM_TESTS_UNIT_FAKE_NET_H
#define SKILLVM_TESTS_UNIT_FAKE_NET_H

#include "tests/unit/fake_guest.h"

void fake_net_behave(struct fake *f);

#endif
