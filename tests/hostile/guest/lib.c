/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile/guest/guest.h"

static uint64_t random_state;
bool gentle = true;
/* The end of what it says, of n bytes: for who looks into a machine that has no serial port. */
static struct {
    char magic[16];
    volatile uint64_t n;
    volatile char text[1u << 16];
} said = {.magic = "said by a guest"};

static void put(char c)
{
    said.text[said.n % sizeof(said.text)] = c;
    said.n++;
    store8(LAYOUT_SERIAL_BASE, (uint8_t)c);
}

void print(const char *text)
{
    while (*text)
        put(*text++);
}

void print_hex(uint64_t value, unsigned digits)
{
    while (digits-- > 0)
        put("0123456789abcdef"[value >> digits * 4 & 15]);
}

void print_value(const char *text, uint64_t value)
{
    print(text);
    print_hex(value, 16);
    print("\n");
}

void random_seed(uint64_t seed)
{
    random_state = seed * 2 + 1;
}

/* splitmix64 */
uint64_t random_next(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t random_below(uint64_t limit)
{
    return random_next() % limit;
}

uint64_t random_page(void)
{
    uint64_t low = ((uint64_t)(uintptr_t)image_start - FIELD_START) / PAGE;
    uint64_t high =
        (LAYOUT_VMGENID_GPA(LAYOUT_RAM_MIN_BYTES) - (uint64_t)(uintptr_t)image_end) / PAGE;
    uint64_t n = random_below(low + high);

    return n < low ? FIELD_START + n * PAGE : (uint64_t)(uintptr_t)image_end + (n - low) * PAGE;
}

uint64_t random_address(void)
{
    return random_page() + random_below(PAGE);
}

void fill_random(void *to, size_t bytes)
{
    uint64_t *words = to;

    for (size_t i = 0; i < bytes / sizeof(*words); i++)
        words[i] = random_next();
}

void *memset(void *to, int value, size_t n)
{
    void *at = to;

    __asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(value) : "memory");
    return to;
}

void *memcpy(void *to, const void *from, size_t n)
{
    void *at = to;

    __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(n) : : "memory");
    return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const uint8_t *x = a, *y = b;

    for (size_t i = 0; i < n; i++) {
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    }
    return 0;
}

_Noreturn void spin(void)
{
    for (;;)
        __asm__ volatile("pause");
}

_Noreturn void end_spinning(void)
{
    print("end\n");
    spin();
}

_Noreturn void lost(const char *text, uint64_t value)
{
    print("lost ");
    print_value(text, value);
    spin();
}

void set_priority(uint64_t priority)
{
    if (gentle)
        store32(LAPIC_GPA + 0x80, (uint32_t)priority << 4);
    else
        write_cr8(priority);
}
