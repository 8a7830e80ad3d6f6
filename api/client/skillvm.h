/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libskillvm: run skills in microVMs by a skillvm daemon, from C or C++.
 *
 *     struct skillvm_error error;
 *     struct skillvm *client;
 *     char *result;
 *
 *     if (skillvm_open("/run/skillvm/skillvm.sock", NULL, &client, &error) < 0 ||
 *         skillvm_run(client, "{\"skill\":\"word-counter\",\"input\":{\"text\":\"a b\"}}",
 *                     -1, NULL, &result, &error) < 0)
 *         fprintf(stderr, "%s\n", error.message);
 *
 * Results. A function that returns int gives 0, or a negative errno and then fills the error,
 * which may be NULL. What the daemon refused is -EREMOTEIO, with the HTTP status and the
 * daemon's stable code in the error. -ENOENT or -ECONNREFUSED: nobody listens there.
 * -ETIMEDOUT, -E2BIG (an answer over a limit), -EINTR (should_stop said so), -EINVAL (an
 * argument), -ENOMEM, -EPIPE (the daemon took the beginning of an upload alone), -EPROTO (an
 * answer that cannot be read) and -EIO say what their names say. A callback's negative result
 * ends the call, which returns it.
 *
 * Texts. JSON is passed and given as text, in UTF-8 with a NUL at its end; docs/api.md has the
 * shapes. What a ret_ parameter gives belongs to the caller, who frees it with skillvm_free();
 * on failure nothing is given and the parameter stays as it was. Arguments are only borrowed.
 *
 * Threads. One struct skillvm may be used by many threads at once, each call with an error of
 * its own; callbacks run in the thread of the call. Only skillvm_close() must come last and
 * alone. No call changes a signal's handling; with an https URL ignore SIGPIPE. A host's name
 * is looked up in a thread of libcurl's.
 *
 * Fleets. A handle sends along what it saw last, so that it finds at any node of a fleet what
 * it did at another, or gets 503 where that node is not as far; after a 503 it asks without.
 *
 * Stability. Only names that begin with skillvm_ or SKILLVM_ are used. A change that breaks a
 * program changes the library's soname.
 */
#ifndef SKILLVM_H
#define SKILLVM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* A daemon and what it takes to speak with it. */
struct skillvm;

#define SKILLVM_CODE_MAX    48
#define SKILLVM_MESSAGE_MAX 512

/* Why a call failed. Success leaves it untouched. */
struct skillvm_error {
    int code;                          /* a positive errno, the result without its sign */
    int http_status;                   /* of the daemon's answer; 0: there was none */
    unsigned retry_after_s;            /* when to come again; 0: the daemon did not say */
    char name[SKILLVM_CODE_MAX];       /* the daemon's code, such as "not_found", or "" */
    char message[SKILLVM_MESSAGE_MAX]; /* for a person, without a line end */
};

/* The library's version, "0.2.0". Static. */
const char *skillvm_version(void);

/*
 * Names a daemon; nothing is sent yet. where is the path of its unix socket, or a URL
 * ("https://skills.example.org", "http://127.0.0.1:8080/prefix"). key is an API key, or NULL:
 * on the unix socket the daemon may know the caller by its user. Redirects are not followed.
 * Proxies of the environment are used for URLs and never for a socket.
 */
int skillvm_open(const char *where, const char *key, struct skillvm **ret_client,
                 struct skillvm_error *error);
/*
 * From here on every request is for this tenant, by id or name (NULL: for the key's own again).
 * An operator may ask for any tenant, others for their own alone. Not while another thread uses
 * the handle.
 */
int skillvm_set_tenant(struct skillvm *client, const char *tenant, struct skillvm_error *error);
/* Ends its connections. NULL is fine. */
void skillvm_close(struct skillvm *client);
/* Frees what a ret_ parameter gave. NULL is fine. */
void skillvm_free(void *text);

/* ---- Any request ---- */

/* A file as a body, or as a part of a multipart/form-data body. */
struct skillvm_upload {
    int fd;               /* a regular file is sent whole, anything else from here to its end */
    const char *part;     /* the part's name; NULL: the file is the body itself */
    const char *filename; /* of the part; NULL: the part's name */
    const char *type;     /* media type; NULL: application/octet-stream */
};

/* Zero it, then say what differs. */
struct skillvm_request {
    const char *method; /* NULL: POST where there is a body, else GET */
    const char *path;   /* with its query, percent-encoded: "/v1/executions?limit=5" */
    const char *accept; /* NULL: anything */
    /*
     * JSON, or NULL. Next to an upload that is a part it is the part "request".
     */
    const char *json;
    const struct skillvm_upload *upload; /* NULL: none */
    uint64_t timeout_ms;                 /* of the whole call; 0: none */
    /*
     * The body of a 2xx answer in pieces, or NULL. type is its media type, or "". A negative
     * result ends the call.
     */
    int (*on_body)(void *ctx, const char *type, const void *data, size_t len);
    /* Server-sent events take this way where it is not NULL, and on_body gets other answers. */
    int (*on_event)(void *ctx, const char *name, const char *data, size_t len);
    /* Called about once a second and whenever something comes; not 0 ends the call. */
    int (*should_stop)(void *ctx);
    void *ctx; /* of the three */
};

/* Makes the request. ret_status (may be NULL) gets the HTTP status of success. */
int skillvm_perform(struct skillvm *client, const struct skillvm_request *request,
                    int *ret_status, struct skillvm_error *error);

/*
 * The short form: json may be NULL, and so may ret_body, which gets the answer's body ("" where
 * it has none). At most 128 MiB and one minute.
 */
int skillvm_request(struct skillvm *client, const char *method, const char *path,
                    const char *json, char **ret_body, struct skillvm_error *error);

/* The text with everything a path's segment or a query's value may not hold as %NN; NULL
 * without memory. skillvm_free() it. */
char *skillvm_escape(const char *text);

/* ---- Skills ---- */

/*
 * Opens what a person named: a folder with a SKILL.md, which is packed into an anonymous file,
 * or an archive (zip, tar). The descriptor is the caller's to close. -ENOENT: no such path.
 */
int skillvm_open_skill(const char *path, int *ret_fd, struct skillvm_error *error);
/* Registers the archive in fd, from its beginning. Gives {"name","version","digest",…}. */
int skillvm_push_skill(struct skillvm *client, int fd, char **ret_json,
                       struct skillvm_error *error);
/* The same in the place of what its version has, unless an execution of that waits or runs. */
int skillvm_replace_skill(struct skillvm *client, int fd, char **ret_json,
                          struct skillvm_error *error);
/* Gives an array of the registered skills. */
int skillvm_list_skills(struct skillvm *client, char **ret_json, struct skillvm_error *error);
/* Gives one skill with its instructions. version NULL: the one registered last; also
 * "sha256:DIGEST". */
int skillvm_get_skill(struct skillvm *client, const char *name, const char *version,
                      char **ret_json, struct skillvm_error *error);
int skillvm_remove_skill(struct skillvm *client, const char *name, const char *version,
                         struct skillvm_error *error);

/* ---- Executions ---- */

/* What happens while an execution runs. Each may be NULL; a negative result ends the call. */
struct skillvm_events {
    /* It is "accepted" or "running"; the first call brings its id. */
    int (*on_status)(void *ctx, const char *execution_id, const char *status);
    /* What the skill printed, as it came: any bytes. */
    int (*on_stdout)(void *ctx, const char *data, size_t len);
    int (*on_stderr)(void *ctx, const char *data, size_t len);
    /* The result's JSON, once, at the end. */
    int (*on_result)(void *ctx, const char *json, size_t len);
    /* As of struct skillvm_request. The execution itself goes on: skillvm_cancel() ends it. */
    int (*should_stop)(void *ctx);
    void *ctx;
};

/*
 * Runs a skill, or code, and waits for its end. request is the JSON of POST /v1/executions,
 * such as {"skill":"word-counter"} or {"code":"print(1)","lang":"python"}; where archive_fd is
 * not -1, the skill is the archive in it and is not registered. events may be NULL. Gives the
 * result's JSON where ret_result is not NULL. A skill that failed is a success here: the
 * result's "status" says so. With "async": true it does not wait, and the result is
 * {"execution_id","status"}.
 */
int skillvm_run(struct skillvm *client, const char *request, int archive_fd,
                const struct skillvm_events *events, char **ret_result,
                struct skillvm_error *error);
/* Follows an execution from its beginning to its end, whoever started it. As skillvm_run(). */
int skillvm_follow(struct skillvm *client, const char *execution_id,
                   const struct skillvm_events *events, char **ret_result,
                   struct skillvm_error *error);
/* Ends an execution that waits or runs. */
int skillvm_cancel(struct skillvm *client, const char *execution_id,
                   struct skillvm_error *error);
/* Gives its result, or the shape of one so far. */
int skillvm_get_execution(struct skillvm *client, const char *execution_id, char **ret_json,
                          struct skillvm_error *error);

/* Which executions to list. Zero it, then say what differs. */
struct skillvm_filter {
    const char *skill;  /* NULL: any */
    const char *status; /* NULL: any */
    const char *cursor; /* "next_cursor" of the page before, or NULL */
    unsigned limit;     /* entries of a page, at most 200; 0: the daemon's choice */
};

/* Gives a page, newest first: {"executions": […], "next_cursor"}. filter may be NULL. */
int skillvm_list_executions(struct skillvm *client, const struct skillvm_filter *filter,
                            char **ret_json, struct skillvm_error *error);
/* Gives what it printed so far, both streams as they came; there may be NULs in it. */
int skillvm_get_logs(struct skillvm *client, const char *execution_id, char **ret_text,
                     size_t *ret_len, struct skillvm_error *error);

/* ---- Files ---- */

/*
 * Writes a file that an execution left to fd, or all of them as a tar.gz where path is NULL.
 * More than max_bytes (0: no limit) is -E2BIG.
 */
int skillvm_download(struct skillvm *client, const char *execution_id, const char *path, int fd,
                     uint64_t max_bytes, struct skillvm_error *error);
/* Uploads an input file, as of struct skillvm_upload. Gives {"id","name","bytes",…}. */
int skillvm_upload(struct skillvm *client, int fd, const char *name, char **ret_json,
                   struct skillvm_error *error);

/* ---- Sessions ---- */

/* Gives an array of the sessions, the one changed last first. */
int skillvm_list_sessions(struct skillvm *client, char **ret_json, struct skillvm_error *error);
/* Gives one with its files: {"id","bytes","files","files_list":[{"path","size_bytes"}],…}. */
int skillvm_get_session(struct skillvm *client, const char *session_id, char **ret_json,
                        struct skillvm_error *error);
/* Writes a file of a session to fd. As skillvm_download(). */
int skillvm_download_from_session(struct skillvm *client, const char *session_id,
                                  const char *path, int fd, uint64_t max_bytes,
                                  struct skillvm_error *error);
int skillvm_remove_session_file(struct skillvm *client, const char *session_id,
                                const char *path, struct skillvm_error *error);
int skillvm_remove_session(struct skillvm *client, const char *session_id,
                           struct skillvm_error *error);

/* ---- Tools ---- */

/* Gives the skills as tool definitions; format is "openai", "anthropic" or "mcp". */
int skillvm_list_tools(struct skillvm *client, const char *format, char **ret_json,
                       struct skillvm_error *error);
/* Calls one. arguments is a JSON object, or NULL for an empty one. As skillvm_run(). */
int skillvm_call_tool(struct skillvm *client, const char *name, const char *arguments,
                      const struct skillvm_events *events, char **ret_result,
                      struct skillvm_error *error);

/* ---- The daemon ---- */

/*
 * Asks whether executions can start at once. -EREMOTEIO: not yet, and the message says what it
 * waits for; -ENOTRECOVERABLE: it never will be. The name is the daemon's word for its state:
 * "cut_off" where nothing is wrong but that it is cut off from its cluster.
 */
int skillvm_ready(struct skillvm *client, struct skillvm_error *error);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
