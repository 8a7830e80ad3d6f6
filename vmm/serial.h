/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transmit half of an 8250 UART in a memory window, for boot logs: no snapshot holds it,
 * and a machine without a console has none. It receives nothing and drops what its console does
 * not take. It must never wait for the console, nor answer an offset with anything but a
 * register.
 */
#ifndef SKILLVM_VMM_SERIAL_H
#define SKILLVM_VMM_SERIAL_H

#include <stdbool.h>
#include <stdint.h>

#define SERIAL_LINE_MAX 256u

struct serial {
    int console_fd; /* borrowed; -1 drops the output */
    uint8_t ier;
    uint8_t lcr;
    uint8_t mcr;
    uint8_t scratch;
    uint8_t divisor[2];
    bool empty_pending; /* "transmitter empty" waits to be read from the IIR */
    bool interrupt_due;
    uint32_t line_len;
    char line[SERIAL_LINE_MAX]; /* written to the console at its end */
};

void serial_init(struct serial *s, int console_fd);
/* A guest's access at offset of the window, len 1 … 8; only single bytes mean anything. */
void serial_read(struct serial *s, uint64_t offset, void *data, uint32_t len);
void serial_write(struct serial *s, uint64_t offset, const void *data, uint32_t len);
/* True when the interrupt must be raised; clears it. */
bool serial_take_interrupt(struct serial *s);

#endif
