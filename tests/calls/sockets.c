/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets: between processes, over loopback, and the families and options that are there at
 * all.
 */
#include "tests/calls/calls.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_alg.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Not in every libc's headers. */
#define PROTOCOL_MPTCP   262
#define SOCKET_PEERPIDFD 77

#define LOOPBACK_2 0x7f000002u
#define MULTICAST  0xefffff01u /* 239.255.255.1 */
#define ELSEWHERE  0xc0000201u /* 192.0.2.1, which is nobody's */

static const int one = 1;

static int unix_socket(int type, struct sockaddr_un *ret_address, const char *name)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* A leading "@" is a name without a file. */
    strncpy(ret_address->sun_path, name, sizeof(ret_address->sun_path) - 1);
    if (name[0] == '@')
        ret_address->sun_path[0] = 0;
    return socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
}

static struct sockaddr_in ipv4(unsigned host, unsigned short port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(host)};
}

static struct sockaddr_in6 ipv6_loopback(void)
{
    return (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
}

/* A stream from a client to a server and back; the server's and the client's socket. */
static int connect_pair(int domain, void *address, socklen_t size, int *ret_fds)
{
    char text[4];
    int server = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (server < 0 || bind(server, address, size) < 0 || listen(server, 1) < 0 ||
        getsockname(server, address, &size) < 0)
        return -errno;
    ret_fds[1] = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TRY(ret_fds[1]);
    TRY(connect(ret_fds[1], address, size));
    ret_fds[0] = accept4(server, NULL, NULL, SOCK_CLOEXEC);
    TRY(ret_fds[0]);
    CHECK(send(ret_fds[1], "abc", 3, 0) == 3);
    CHECK(recv(ret_fds[0], text, 4, MSG_PEEK) == 3 && recv(ret_fds[0], text, 4, 0) == 3);
    CHECK(recv(ret_fds[0], text, 4, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    return 0;
}

static int unix_pair(const char *name, int *ret_fds)
{
    struct sockaddr_un address;

    TRY(unix_socket(SOCK_STREAM, &address, name));
    return connect_pair(AF_UNIX, &address,
                        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name)),
                        ret_fds);
}

static int unix_stream(void)
{
    int fds[2] = {-1, -1};

    return unix_pair("socket", fds);
}

static int unix_abstract(void)
{
    int fds[2] = {-1, -1};

    return unix_pair("@calls-probe", fds);
}

static int unix_peer(void)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    int fds[2] = {-1, -1};

    TRY_PROBE(unix_pair("socket", fds));
    TRY(getsockopt(fds[0], SOL_SOCKET, SO_PEERCRED, &peer, &size));
    CHECK(peer.pid == getpid() && peer.uid == geteuid());
    return 0;
}

static int unix_peer_pidfd(void)
{
    int peer = -1;
    socklen_t size = sizeof(peer);
    int fds[2] = {-1, -1};

    TRY_PROBE(unix_pair("socket", fds));
    return getsockopt(fds[0], SOL_SOCKET, SOCKET_PEERPIDFD, &peer, &size) < 0 ? -errno : 0;
}

static int unix_others(void)
{
    struct sockaddr_un address;
    char text[8];
    int fd = unix_socket(SOCK_DGRAM, &address, "datagrams");
    int fds[2] = {-1, -1};

    TRY(fd);
    TRY(bind(fd, (struct sockaddr *)&address, sizeof(address)));
    CHECK(sendto(fd, "abc", 3, 0, (struct sockaddr *)&address, sizeof(address)) == 3);
    CHECK(recv(fd, text, sizeof(text), 0) == 3);
    TRY(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
    CHECK(send(fds[0], "ab", 2, 0) == 2 && send(fds[0], "c", 1, 0) == 1);
    CHECK(recv(fds[1], text, sizeof(text), 0) == 2);
    TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    return shutdown(fds[0], SHUT_WR) < 0 ? -errno : 0;
}

/* One control message of a type from one end of a pair to the other; its content. */
static int pass(int type, const void *content, size_t size, void *ret_content)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(64)];
    } control = {0};
    char byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_SPACE(size)};
    int fds[2] = {-1, -1};

    TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    TRY(setsockopt(fds[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)));
    control.head = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(size), .cmsg_level = SOL_SOCKET, .cmsg_type = type};
    memcpy(CMSG_DATA(&control.head), content, size);
    TRY(sendmsg(fds[0], &message, 0));
    message.msg_controllen = sizeof(control);
    TRY(recvmsg(fds[1], &message, MSG_CMSG_CLOEXEC));
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_type == type) {
            memcpy(ret_content, CMSG_DATA(c), size);
            return 0;
        }
    return probe_says("no control message");
}

static int unix_descriptors(void)
{
    char text[4];
    int ends[2];
    int got = -1;

    TRY(pipe2(ends, O_CLOEXEC));
    TRY_PROBE(pass(SCM_RIGHTS, &ends[0], sizeof(int), &got));
    CHECK(got != ends[0] && write(ends[1], "x", 1) == 1 && read(got, text, 1) == 1);
    return 0;
}

static int unix_credentials(void)
{
    const struct ucred mine = {getpid(), geteuid(), getegid()};
    struct ucred got = {0};

    TRY_PROBE(pass(SCM_CREDENTIALS, &mine, sizeof(mine), &got));
    CHECK(memcmp(&mine, &got, sizeof(got)) == 0);
    return 0;
}

static int unix_lying_credentials(void)
{
    const struct ucred other = {1, geteuid(), getegid()};
    struct ucred got;

    return pass(SCM_CREDENTIALS, &other, sizeof(other), &got);
}

static int tcp_pair(unsigned host, int *ret_fds)
{
    struct sockaddr_in address = ipv4(host, 0);

    return connect_pair(AF_INET, &address, sizeof(address), ret_fds);
}

static int tcp_plain(void)
{
    int fds[2] = {-1, -1};

    return tcp_pair(INADDR_LOOPBACK, fds);
}

static int tcp_other_loopback(void)
{
    int fds[2] = {-1, -1};

    return tcp_pair(LOOPBACK_2, fds);
}

static int tcp_ipv6(void)
{
    struct sockaddr_in6 address = ipv6_loopback();
    int fds[2] = {-1, -1};

    return connect_pair(AF_INET6, &address, sizeof(address), fds);
}

/* A server on :: has the callers of 127.0.0.1 too. */
static int tcp_both(void)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in to;
    socklen_t size = sizeof(any);
    int server = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    TRY(server);
    TRY(client);
    TRY(bind(server, (struct sockaddr *)&any, size));
    TRY(listen(server, 1));
    TRY(getsockname(server, (struct sockaddr *)&any, &size));
    to = ipv4(INADDR_LOOPBACK, ntohs(any.sin6_port));
    return connect(client, (struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
}

static int tcp_options(void)
{
    static const int options[] = {TCP_NODELAY, TCP_CORK, TCP_KEEPIDLE, TCP_QUICKACK,
                                  TCP_USER_TIMEOUT};
    struct tcp_info info;
    socklen_t size = sizeof(info);
    int fds[2] = {-1, -1};

    TRY_PROBE(tcp_pair(INADDR_LOOPBACK, fds));
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        TRY(setsockopt(fds[0], IPPROTO_TCP, options[i], &one, sizeof(one)));
    TRY(getsockopt(fds[0], IPPROTO_TCP, TCP_INFO, &info, &size));
    CHECK(info.tcpi_state == TCP_ESTABLISHED);
    return 0;
}

static int option(int domain, int type, int level, int name, const void *value, socklen_t size)
{
    int fd = socket(domain, type | SOCK_CLOEXEC, 0);

    TRY(fd);
    return setsockopt(fd, level, name, value, size) < 0 ? -errno : 0;
}

static int tcp_congestion(void)
{
    return option(AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
}

static int tcp_fast_open(void)
{
    return option(AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof(one));
}

static int tcp_tls(void)
{
    int fds[2] = {-1, -1};

    TRY_PROBE(tcp_pair(INADDR_LOOPBACK, fds));
    return setsockopt(fds[0], IPPROTO_TCP, TCP_ULP, "tls", 4) < 0 ? -errno : 0;
}

static int socket_options(void)
{
    static const int options[] = {SO_REUSEADDR,   SO_REUSEPORT, SO_KEEPALIVE, SO_BROADCAST,
                                  SO_TIMESTAMPNS, SO_RCVBUF,    SO_SNDBUF,    SO_ZEROCOPY};

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        TRY_PROBE(option(AF_INET, SOCK_DGRAM, SOL_SOCKET, options[i], &one, sizeof(one)));
    return option(AF_INET6, SOCK_STREAM, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
}

static int socket_filter(void)
{
    struct sock_filter rules[] = {BPF_STMT(BPF_RET | BPF_K, 0xffff)};
    const struct sock_fprog program = {.len = 1, .filter = rules};

    return option(AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static int socket_mark(void)
{
    return option(AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_MARK, &one, sizeof(one));
}

/* What a socket sends to its own address. */
static int datagram_to_self(int domain, void *address, socklen_t size)
{
    char text[8];
    int fd = socket(domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    TRY(fd);
    TRY(bind(fd, address, size));
    TRY(getsockname(fd, address, &size));
    TRY(sendto(fd, "abc", 3, 0, address, size));
    CHECK(recv(fd, text, sizeof(text), 0) == 3);
    return 0;
}

static int udp_plain(void)
{
    struct sockaddr_in address = ipv4(INADDR_LOOPBACK, 0);

    return datagram_to_self(AF_INET, &address, sizeof(address));
}

static int udp_ipv6(void)
{
    struct sockaddr_in6 address = ipv6_loopback();

    return datagram_to_self(AF_INET6, &address, sizeof(address));
}

static int udp_many(void)
{
    struct sockaddr_in address = ipv4(INADDR_LOOPBACK, 0);
    socklen_t size = sizeof(address);
    char text[2][4] = {"abc", "de"};
    struct iovec parts[] = {{text[0], 3}, {text[1], 2}};
    struct mmsghdr messages[2] = {{{.msg_iov = &parts[0], .msg_iovlen = 1}, 0},
                                  {{.msg_iov = &parts[1], .msg_iovlen = 1}, 0}};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    TRY(fd);
    TRY(bind(fd, (struct sockaddr *)&address, size));
    TRY(getsockname(fd, (struct sockaddr *)&address, &size));
    TRY(connect(fd, (struct sockaddr *)&address, size));
    CHECK(sendmmsg(fd, messages, 2, 0) == 2 && recvmmsg(fd, messages, 2, 0, NULL) == 2);
    CHECK(messages[1].msg_len == 2);
    return 0;
}

static int multicast_ipv4(void)
{
    const struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
    const struct ip_mreq group = {{htonl(MULTICAST)}, loopback};
    struct sockaddr_in address = ipv4(MULTICAST, 0);
    socklen_t size = sizeof(address);
    char text[8];
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    TRY(fd);
    TRY(bind(fd, (struct sockaddr *)&address, size));
    TRY(getsockname(fd, (struct sockaddr *)&address, &size));
    TRY(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group)));
    TRY(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof(loopback)));
    TRY(sendto(fd, "abc", 3, 0, (struct sockaddr *)&address, size));
    CHECK(recv(fd, text, sizeof(text), 0) == 3);
    return 0;
}

static int multicast_ipv6(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};
    struct ipv6_mreq group = {0};
    unsigned device = if_nametoindex("lo");
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    TRY(fd);
    CHECK(device && inet_pton(AF_INET6, "ff01::1234", &address.sin6_addr) == 1);
    group = (struct ipv6_mreq){address.sin6_addr, device};
    TRY(setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &group, sizeof(group)));
    TRY(setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &device, sizeof(device)));
    return datagram_to_self(
        AF_INET6,
        &(struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT},
        sizeof(struct sockaddr_in6));
}

static int bind_low_port(void)
{
    const struct sockaddr_in address = ipv4(INADDR_LOOPBACK, 80);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    TRY(fd);
    return bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

static int connect_elsewhere(void)
{
    const struct sockaddr_in address = ipv4(ELSEWHERE, 80);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    TRY(fd);
    return connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 &&
                   errno != EINPROGRESS
               ? -errno
               : 0;
}

static int netlink_routes(void)
{
    const struct {
        struct nlmsghdr head;
        struct rtgenmsg family;
    } ask = {{sizeof(ask), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 0, 0}, {AF_UNSPEC}};
    union {
        struct nlmsghdr head;
        char room[8192];
    } answer;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    TRY(fd);
    CHECK(send(fd, &ask, sizeof(ask), 0) == (ssize_t)sizeof(ask));
    CHECK(recv(fd, &answer, sizeof(answer), 0) > 0 && answer.head.nlmsg_type == RTM_NEWLINK);
    return 0;
}

static int interface_list(void)
{
    struct ifreq requests[8];
    struct ifconf list = {.ifc_len = sizeof(requests), .ifc_req = requests};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    TRY(fd);
    TRY(ioctl(fd, SIOCGIFCONF, &list));
    CHECK(list.ifc_len > 0 && strcmp(requests[0].ifr_name, "lo") == 0);
    return 0;
}

static int interface_change(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = 0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    TRY(fd);
    return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

static int vsock_host(void)
{
    const struct sockaddr_vm host = {
        .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_HOST, .svm_port = 1024};
    int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

    TRY(fd);
    return connect(fd, (const struct sockaddr *)&host, sizeof(host)) < 0 ? -errno : 0;
}

static const struct probe probes[] = {
    PROBE("unix sockets with a name", unix_stream),
    PROBE("unix sockets without a file", unix_abstract),
    PROBE("socketpair, unix datagrams", unix_others),
    PROBE("SCM_RIGHTS", unix_descriptors),
    PROBE("SCM_CREDENTIALS", unix_credentials),
    PROBE("SCM_CREDENTIALS of another", unix_lying_credentials),
    PROBE("SO_PEERCRED", unix_peer),
    PROBE("SO_PEERPIDFD", unix_peer_pidfd),
    PROBE("TCP over 127.0.0.1", tcp_plain),
    PROBE("TCP over 127.0.0.2", tcp_other_loopback),
    PROBE("TCP over ::1", tcp_ipv6),
    PROBE("TCP of both families", tcp_both),
    PROBE("TCP_NODELAY TCP_KEEPIDLE TCP_INFO", tcp_options),
    PROBE("TCP_CONGESTION", tcp_congestion),
    PROBE("TCP_FASTOPEN_CONNECT", tcp_fast_open),
    PROBE("TCP_ULP tls", tcp_tls),
    PROBE("SO_REUSEPORT SO_KEEPALIVE SO_ZEROCOPY", socket_options),
    PROBE("SO_ATTACH_FILTER", socket_filter),
    PROBE("SO_MARK", socket_mark),
    PROBE("UDP over 127.0.0.1", udp_plain),
    PROBE("UDP over ::1", udp_ipv6),
    PROBE("sendmmsg recvmmsg", udp_many),
    PROBE("multicast, IPv4", multicast_ipv4),
    PROBE("multicast, IPv6", multicast_ipv6),
    PROBE("bind to port 80", bind_low_port),
    PROBE("connect to another machine", connect_elsewhere),
    PROBE("netlink of routes", netlink_routes),
    PROBE("ioctl SIOCGIFCONF", interface_list),
    PROBE("ioctl SIOCSIFFLAGS", interface_change),
    PROBE("vsock to the host", vsock_host),
    {.name = "raw sockets", .number = SYS_socket, .args = {AF_INET, SOCK_RAW, IPPROTO_RAW}},
    {.name = "ping sockets", .number = SYS_socket, .args = {AF_INET, SOCK_DGRAM, IPPROTO_ICMP}},
    {.name = "MPTCP", .number = SYS_socket, .args = {AF_INET, SOCK_STREAM, PROTOCOL_MPTCP}},
    {.name = "SCTP", .number = SYS_socket, .args = {AF_INET, SOCK_STREAM, IPPROTO_SCTP}},
    {.name = "AF_PACKET", .number = SYS_socket, .args = {AF_PACKET, SOCK_RAW}},
    {.name = "AF_ALG", .number = SYS_socket, .args = {AF_ALG, SOCK_SEQPACKET}},
    {.name = "AF_CAN", .number = SYS_socket, .args = {AF_CAN, SOCK_RAW, 1}},
    {.name = "AF_BLUETOOTH", .number = SYS_socket, .args = {AF_BLUETOOTH, SOCK_SEQPACKET}},
    {.name = "AF_TIPC", .number = SYS_socket, .args = {AF_TIPC, SOCK_SEQPACKET}},
    {.name = "AF_XDP", .number = SYS_socket, .args = {AF_XDP, SOCK_RAW}},
    {.name = "netlink of netfilter",
     .number = SYS_socket,
     .args = {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER}},
    {.name = "netlink of sock_diag",
     .number = SYS_socket,
     .args = {AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG}},
};

const struct probe_list calls_sockets = PROBE_LIST(probes);
