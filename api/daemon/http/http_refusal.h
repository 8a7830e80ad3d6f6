/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers to what is not a request: written to the socket without the HTTP library, which would
 * answer with a page for people.
 */
#ifndef SKILLVM_API_DAEMON_HTTP_HTTP_REFUSAL_H
#define SKILLVM_API_DAEMON_HTTP_HTTP_REFUSAL_H

/* Sends it as far as the socket takes it at once; the connection has to be closed after it. */
void http_refusal_send(int fd, unsigned status);

#endif
