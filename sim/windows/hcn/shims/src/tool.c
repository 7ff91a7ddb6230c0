/*
 * A program of Windows that winlab answers: it sends its name and its arguments to the
 * address in WINLAB_TOOLS and prints what comes back.
 *
 * Request: each word with a 0 byte behind it, and the end of the stream.
 * Answer: "CODE OUT ERR\n", then OUT bytes for standard output and ERR for the other.
 */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static SOCKET s;

static int fail(const char *name, const char *what)
{
    fprintf(stderr, "%s: %s: winlab does not answer\n", name, what);
    return 1;
}

/* copy hands n bytes on. */
static int copy(FILE *to, long n)
{
    char buf[4096];
    while (n > 0) {
        int got = recv(s, buf, n < (long)sizeof buf ? (int)n : (int)sizeof buf, 0);
        if (got <= 0)
            return 0;
        fwrite(buf, 1, got, to);
        n -= got;
    }
    return 1;
}

int main(int argc, char **argv)
{
    const char *at = getenv("WINLAB_TOOLS");
    char host[64], head[64];
    struct sockaddr_in to;
    WSADATA data;
    const char *colon;
    int i, n = 0, code;
    long out, err;

    if (!at || !(colon = strrchr(at, ':')) || colon - at >= (int)sizeof host)
        return fail(argv[0], "WINLAB_TOOLS");
    memcpy(host, at, colon - at);
    host[colon - at] = 0;
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = inet_addr(host);
    to.sin_port = htons((unsigned short)atoi(colon + 1));
    if (WSAStartup(MAKEWORD(2, 2), &data))
        return fail(argv[0], "WSAStartup");
    s = socket(AF_INET, SOCK_STREAM, 0);
    if (s == INVALID_SOCKET || connect(s, (struct sockaddr *)&to, sizeof to))
        return fail(argv[0], at);
    for (i = 0; i < argc; i++) {
        int len = (int)strlen(argv[i]) + 1, sent = 0;
        while (sent < len) {
            int k = send(s, argv[i] + sent, len - sent, 0);
            if (k <= 0)
                return fail(argv[0], at);
            sent += k;
        }
    }
    shutdown(s, SD_SEND);
    while (n < (int)sizeof head - 1 && recv(s, head + n, 1, 0) == 1 && head[n] != '\n')
        n++;
    head[n] = 0;
    _setmode(_fileno(stdout), _O_BINARY); /* the lines end as on Windows already */
    _setmode(_fileno(stderr), _O_BINARY);
    if (sscanf(head, "%d %ld %ld", &code, &out, &err) != 3)
        return fail(argv[0], at);
    if (!copy(stdout, out) || !copy(stderr, err))
        return fail(argv[0], at);
    return code;
}
