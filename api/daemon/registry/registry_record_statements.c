/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_record_statements.h"

#include "api/daemon/registry/registry_internal.h"

/* What is no object ends as what is written here does. */
#define ENDING                                                                                 \
    " SET status = ?2, result = ?3 || char(10), finished_ns = ?4, artifact_digest = "          \
    "NULLIF(?5, ''),"                                                                          \
    " artifact_bytes = ?6, result_bytes = ?7 + (?3 IS NOT NULL)"
#define ACCEPTED                                                                               \
    "e.id, e.tenant_id, e.skill_name, e.skill_version, e.skill_digest,"                        \
    " COALESCE(e.idempotency_key, ''), COALESCE(e.request_digest, ''), e.accepted_ns, "        \
    "r.waits,"                                                                                 \
    " r.node, r.instance"

static const char *const text[N_RECORD_STATEMENTS] = {
    [ACCEPT] = "INSERT OR IGNORE INTO executions(id, status, skill_name, skill_version,"
               " skill_digest, accepted_ns, idempotency_key, request_digest, tenant_id)"
               " SELECT ?1, 'accepted', ?2, ?3, ?4, ?5, NULLIF(?6, ''), NULLIF(?7, ''), id"
               " FROM tenants WHERE id = ?8",
    [ACCEPT_ENDED] = "INSERT OR IGNORE INTO executions(id, skill_name, skill_version,"
                     " skill_digest, accepted_ns, idempotency_key, request_digest, status,"
                     " result, finished_ns, artifact_digest, artifact_bytes, result_bytes,"
                     " tenant_id) SELECT ?1, ?2, ?3, ?4, ?5, NULLIF(?6, ''), NULLIF(?7, ''),"
                     " ?9, ?10 || char(10), ?11, NULLIF(?12, ''), ?13,"
                     " ?14 + (?10 IS NOT NULL), id FROM tenants WHERE id = ?8",
    [NOTE_OWN] = "INSERT INTO records(id, node, instance, is_told, waits)"
                 " VALUES(?1, '', '', 1, ?2)",
    [NOTE_OTHER] = "INSERT INTO records(id, node, instance, is_told, waits)"
                   " VALUES(?1, ?2, ?3, 1, ?4)",
    [NOTE_ENDED] = "INSERT INTO records(id, node, instance, is_told, waits, cpu_ms,"
                   " result_digest) VALUES(?1, ?2, ?3, 1, 0, ?4, NULLIF(?5, ''))",
    [NOTE_END] = "UPDATE records SET cpu_ms = ?2, result_digest = NULLIF(?3, ''), is_told = 1"
                 " WHERE id = ?1",
    [END_OTHER] = "UPDATE executions" ENDING " WHERE id = ?1 AND tenant_id = ?8"
                  " AND finished_ns IS NULL"
                  " AND EXISTS(SELECT 1 FROM records WHERE id = ?1 AND node <> '')",
    [ADOPT] = "UPDATE executions" ENDING " WHERE id = ?1 AND tenant_id = ?8",
    /* Under its key another node may have begun another request. */
    [ADOPT_BEGIN] = "UPDATE OR IGNORE executions SET skill_name = ?2, skill_version = ?3,"
                    " skill_digest = ?4, accepted_ns = ?5, idempotency_key = NULLIF(?6, ''),"
                    " request_digest = NULLIF(?7, '')"
                    " WHERE id = ?1 AND tenant_id = ?8 AND accepted_ns <> ?5",
    /* Changes a row as it is, as IS_THERE. */
    [IS_OTHER_END] =
        "UPDATE records SET is_told = is_told WHERE id = ?1"
        " AND EXISTS(SELECT 1 FROM executions WHERE id = ?1 AND tenant_id = ?3"
        " AND finished_ns IS NOT NULL AND (finished_ns <> ?2 OR accepted_ns <> ?4))",
    [CHARGE] = "INSERT INTO usage(tenant_id, day, cpu_ms) VALUES(?1, ?2, ?3)"
               " ON CONFLICT(tenant_id, day) DO UPDATE SET cpu_ms = cpu_ms + ?3",
    /* What an end was counted with, on the day that it has; ?2: as of uncharge. */
    [UNCHARGE] = "UPDATE usage SET cpu_ms = MAX(0, usage.cpu_ms - r.cpu_ms)"
                 " FROM executions e JOIN records r ON r.id = e.id"
                 " WHERE e.id = ?1 AND usage.tenant_id = e.tenant_id"
                 " AND usage.day = e.finished_ns / 86400000000000"
                 " AND (?2 = 0 OR (r.node <> '' AND e.accepted_ns <> ?2))",
    [GET] = "SELECT " ACCEPTED ","
            " IIF(e.finished_ns IS NULL, '', e.status), COALESCE(e.finished_ns, 0), r.cpu_ms, "
            "COALESCE(e.artifact_digest, ''),"
            " e.artifact_bytes, e.result_bytes, IIF(e.finished_ns IS NULL, '', e.result)"
            " FROM executions e JOIN records r ON r.id = e.id"
            " WHERE e.id = ?1 AND r.node = ''",
    [UNTOLD] = "SELECT id FROM records WHERE NOT is_told AND id > ?1 ORDER BY id LIMIT 1",
    [COUNT_UNTOLD] = "SELECT COUNT(*) FROM records WHERE NOT is_told",
    [TOLD] = "UPDATE records SET is_told = 1, result_digest = NULLIF(?2, '') WHERE id = ?1",
    /* Its end may have come meanwhile, which is not. */
    [TOLD_BEGIN] = "UPDATE records SET is_told = 1 WHERE id = ?1 AND EXISTS"
                   "(SELECT 1 FROM executions WHERE id = ?1 AND finished_ns IS NULL)",
    [UNTELL] = "UPDATE records SET is_told = 0 WHERE node = '' AND id IN"
               " (SELECT id FROM executions WHERE finished_ns IS NULL UNION ALL"
               " SELECT id FROM executions WHERE finished_ns >= ?1 AND result IS NOT NULL)",
    [UNTELL_ONE] = "UPDATE records SET is_told = 0 WHERE id = ?1 AND node = '' AND EXISTS"
                   "(SELECT 1 FROM executions WHERE id = ?1"
                   " AND (finished_ns IS NULL OR result IS NOT NULL))",
    [PROCESS] = "SELECT DISTINCT r.node, r.instance FROM executions e"
                " JOIN records r ON r.id = e.id WHERE e.finished_ns IS NULL AND r.node <> ''"
                " AND (r.node, r.instance) > (?1, ?2) ORDER BY r.node, r.instance LIMIT 1",
    /* Of those that have not ended, which are few. */
    [UNFINISHED] = "SELECT e.id FROM executions e INDEXED BY executions_unfinished"
                   " CROSS JOIN records r ON r.id = e.id"
                   " WHERE e.finished_ns IS NULL AND r.node = ?1 AND r.instance = ?2"
                   " AND r.waits = ?3 AND e.id > ?4 ORDER BY e.id LIMIT 1",
    /* Changes a row as it is: a transaction's own rows are read by no other way. */
    /* Of two nodes that begin one at once the last one has it. */
    [TAKE_OVER] = "UPDATE records SET node = '', instance = '', waits = ?3"
                  " WHERE id = ?1 AND node <> ''"
                  " AND EXISTS(SELECT 1 FROM executions WHERE id = ?1 AND tenant_id = ?2"
                  " AND finished_ns IS NULL)",
    /* Another node's, which was begun anew since. */
    [DROP_OLD] = "DELETE FROM executions WHERE id = ?1 AND tenant_id = ?2 AND accepted_ns <> ?3"
                 " AND EXISTS(SELECT 1 FROM records WHERE id = ?1 AND node <> '')",
    /* Whose it is now, which has not ended; ?5: also where it was ours. */
    [PASS] = "UPDATE records SET node = ?2, instance = ?3, waits = ?4"
             " WHERE id = ?1 AND (node <> '' OR ?5)"
             " AND EXISTS(SELECT 1 FROM executions WHERE id = ?1 AND finished_ns IS NULL)",
    /* Ours others may begin, and another process says that it has it. */
    [YIELD] = "UPDATE records SET node = ?2, instance = ?3, waits = ?4"
              " WHERE id = ?1 AND node = '' AND waits"
              " AND EXISTS(SELECT 1 FROM executions WHERE id = ?1 AND finished_ns IS NULL)",
    [KEEP] = "UPDATE records SET waits = 0 WHERE id = ?1",
    [LEAVE] = "UPDATE records SET node = ?1, instance = ?2, is_told = 1"
              " WHERE node = '' AND waits AND ?3 IN ('', id) AND id IN"
              " (SELECT id FROM executions WHERE finished_ns IS NULL)",
    [IS_THERE] = "UPDATE records SET is_told = is_told WHERE id = ?1"
                 " AND EXISTS(SELECT 1 FROM executions WHERE id = ?1 AND tenant_id = ?2)",
    /* Changes a row as it is, as IS_THERE. */
    [IS_OUR_END] = "UPDATE records SET is_told = is_told WHERE id = ?1 AND node = ''"
                   " AND EXISTS(SELECT 1 FROM executions WHERE id = ?1 AND finished_ns = ?2)",
    [REOPEN] = "UPDATE executions SET status = 'accepted', result = NULL, finished_ns = NULL,"
               " artifact_digest = NULL, artifact_bytes = 0, result_bytes = 0 WHERE id = ?1",
    [REDATE] = "UPDATE executions SET accepted_ns = ?3 WHERE id = ?1 AND finished_ns = ?2"
               " AND EXISTS(SELECT 1 FROM records WHERE id = ?1 AND node = '')",
    [OTHER] = "SELECT " ACCEPTED " FROM executions e JOIN records r ON r.id = e.id"
              " WHERE e.id = ?1",
};

const struct registry_statements registry_record_statements = {text, N_RECORD_STATEMENTS};
