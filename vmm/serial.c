/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/serial.h"

#include <linux/serial_reg.h>
#include <poll.h>
#include <string.h>

#include "base/fd.h"

void serial_init(struct serial *s, int console_fd)
{
    *s = (struct serial){.console_fd = console_fd};
}

/* A line fits in a pipe that is ready; the machine does not wait for one that is not. */
static void flush_line(struct serial *s)
{
    struct pollfd console = {.fd = s->console_fd, .events = POLLOUT};

    if (s->console_fd >= 0 && poll(&console, 1, 0) > 0 && (console.revents & POLLOUT))
        (void)fd_write_full(s->console_fd, s->line, s->line_len);
    s->line_len = 0;
}

static void transmit(struct serial *s, uint8_t c)
{
    s->line[s->line_len++] = (char)c;
    if (c == '\n' || s->line_len == sizeof(s->line))
        flush_line(s);
    /* Sent at once: the transmitter is empty again. */
    s->empty_pending = true;
    s->interrupt_due = (s->ier & UART_IER_THRI) != 0;
}

static uint8_t interrupt_id(struct serial *s)
{
    if (!s->empty_pending || !(s->ier & UART_IER_THRI))
        return UART_IIR_NO_INT;
    s->empty_pending = false;
    return UART_IIR_THRI;
}

void serial_read(struct serial *s, uint64_t offset, void *data, uint32_t len)
{
    bool divisor = s->lcr & UART_LCR_DLAB;
    uint8_t v = 0;

    memset(data, 0, len);
    switch (offset) {
    case UART_RX:
        v = divisor ? s->divisor[0] : 0;
        break;
    case UART_IER:
        v = divisor ? s->divisor[1] : s->ier;
        break;
    case UART_IIR:
        v = interrupt_id(s);
        break;
    case UART_LCR:
        v = s->lcr;
        break;
    case UART_MCR:
        v = s->mcr;
        break;
    case UART_LSR:
        v = UART_LSR_TEMT | UART_LSR_THRE;
        break;
    case UART_MSR:
        v = UART_MSR_DCD | UART_MSR_DSR | UART_MSR_CTS;
        break;
    case UART_SCR:
        v = s->scratch;
        break;
    default:
        break;
    }
    if (len > 0)
        memcpy(data, &v, 1);
}

void serial_write(struct serial *s, uint64_t offset, const void *data, uint32_t len)
{
    bool divisor = s->lcr & UART_LCR_DLAB;
    uint8_t v;

    if (len == 0)
        return;
    memcpy(&v, data, 1);
    switch (offset) {
    case UART_TX:
        if (divisor)
            s->divisor[0] = v;
        else
            transmit(s, v);
        break;
    case UART_IER:
        if (divisor) {
            s->divisor[1] = v;
            break;
        }
        s->ier = v & 0x0f;
        if (s->ier & UART_IER_THRI) {
            s->empty_pending = true;
            s->interrupt_due = true;
        }
        break;
    case UART_LCR:
        s->lcr = v;
        break;
    case UART_MCR:
        s->mcr = v;
        break;
    case UART_SCR:
        s->scratch = v;
        break;
    default:
        break;
    }
}

bool serial_take_interrupt(struct serial *s)
{
    bool due = s->interrupt_due;

    s->interrupt_due = false;
    return due;
}
