/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the tables for executions as a cluster's records; registry_records.c asks.
 */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_RECORD_STATEMENTS_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_RECORD_STATEMENTS_H

enum record_statement {
    ACCEPT,
    ACCEPT_ENDED,
    NOTE_OWN,
    NOTE_OTHER,
    NOTE_ENDED,
    NOTE_END,
    END_OTHER,
    ADOPT,
    ADOPT_BEGIN,
    IS_OTHER_END,
    CHARGE,
    UNCHARGE,
    GET,
    UNTOLD,
    COUNT_UNTOLD,
    TOLD,
    TOLD_BEGIN,
    UNTELL,
    UNTELL_ONE,
    PROCESS,
    UNFINISHED,
    OTHER,
    IS_THERE,
    IS_OUR_END,
    REOPEN,
    REDATE,
    TAKE_OVER,
    DROP_OLD,
    PASS,
    KEEP,
    YIELD,
    LEAVE,
    N_RECORD_STATEMENTS
};

#endif
