/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema of the registry's database as a list of steps. A step that was released never
 * changes: a change of the schema is a new step at the end.
 */
#ifndef SKILLVM_API_DAEMON_REGISTRY_REGISTRY_SCHEMA_H
#define SKILLVM_API_DAEMON_REGISTRY_REGISTRY_SCHEMA_H

#define REGISTRY_SCHEMA_VERSION 18
/* SQLite's application_id: "skvm". */
#define REGISTRY_APPLICATION_ID 0x736b766d

/* Entry n brings the schema from version n to n + 1. SQL text. */
extern const char *const registry_schema_steps[REGISTRY_SCHEMA_VERSION];

#endif
