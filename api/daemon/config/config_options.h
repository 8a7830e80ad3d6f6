/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of skillvmd. Most options are settings by another name: they become
 * overrides, which config_read checks like every other source.
 */
#ifndef SKILLVM_API_DAEMON_CONFIG_CONFIG_OPTIONS_H
#define SKILLVM_API_DAEMON_CONFIG_CONFIG_OPTIONS_H

#include "api/daemon/config/config.h"

#define OPTIONS_MAX 32u

enum options_action {
    OPTIONS_SERVE,
    OPTIONS_CHECK, /* read the settings and say whether they are good */
    OPTIONS_PRINT, /* write them */
    OPTIONS_DONE,  /* what was asked for is written already */
};

/* Texts are borrowed from argv and the environment. */
struct config_options {
    enum options_action action;
    const char *config_file; /* --config, else $SKILLVM_CONFIG, else NULL */
    struct config_override overrides[OPTIONS_MAX];
    size_t n_overrides;
};

/* An option that is no setting. */
struct config_action {
    const char *name;
    const char *takes; /* NULL: nothing */
    int value;         /* what getopt_long says of it */
    const char *text;
};

/* Ends with one without a name. */
extern const struct config_action config_actions[];

/* 0, or -EINVAL with the reason on standard error. */
int config_options_parse(int argc, char **argv, struct config_options *ret);

#endif
