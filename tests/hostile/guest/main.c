/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's life: boot, commands while the driver holds a connection, the quiet point, and
 * after each return to it a look at itself and what it is told to do.
 */
#include "tests/hostile/guest/guest.h"

#define N_REGISTERS 13u

_Noreturn void guest_main(void);

static uint8_t sector[512] __attribute__((aligned(512)));

static const struct {
    const struct attack *attacks;
    const unsigned *n;
} groups[] = {
    {attacks_cpu, &n_attacks_cpu},
    {attacks_chips, &n_attacks_chips},
    {attacks_memory, &n_attacks_memory},
    {attacks_ends, &n_attacks_ends},
};

static void list_attacks(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(groups); i++) {
        for (unsigned k = 0; k < *groups[i].n; k++) {
            print("attack ");
            print(groups[i].attacks[k].name);
            print(" ");
            print(groups[i].attacks[k].flags);
            print("\n");
        }
    }
}

static const struct attack *find_attack(uint32_t number)
{
    for (unsigned i = 0; i < ARRAY_SIZE(groups); i++) {
        if (number < *groups[i].n)
            return &groups[i].attacks[number];
        number -= *groups[i].n;
    }
    lost("attack ", number);
}

static void run_attack(void *arg)
{
    const struct attack *attack = arg;

    attack->run();
}

static bool is_final(const struct attack *attack)
{
    for (const char *f = attack->flags; *f; f++) {
        if (*f == 'f' || *f == 'x')
            return true;
    }
    return false;
}

static _Noreturn void obey(const struct vsock_command *command)
{
    random_seed(command->seed);
    gentle = command->gentle;
    if (command->check_all)
        check_compare(true);
    for (unsigned i = 0; i < command->n_attacks && i < ARRAY_SIZE(command->attacks); i++) {
        const struct attack *attack = find_attack(command->attacks[i]);

        print("run ");
        print(attack->name);
        print("\n");
        if (is_final(attack))
            attack->run();
        /* What one of them leaves may make the next one fault. */
        (void)try_call(run_attack, (void *)(uintptr_t)attack);
        trap_mood = TRAP_RETURN;
    }
    end_spinning();
}

static void check_registers(const uint64_t registers[N_REGISTERS])
{
    static const uint8_t digits[N_REGISTERS] = {1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14};

    for (unsigned i = 0; i < N_REGISTERS; i++) {
        if (registers[i] != 0x1111111111111111ull * digits[i]) {
            print("differs register ");
            print_hex(digits[i], 2);
            print_value(" is ", registers[i]);
        }
    }
}

/* What the disk says to do, or NULL: the driver says it on the stream. */
static const struct programs_command *find_programs(void)
{
    const struct programs_command *command = (const void *)sector;

    blk_read(0, sector);
    return command->magic == PROGRAMS_MAGIC ? command : NULL;
}

_Noreturn void guest_main(void)
{
    const volatile uint64_t *generation =
        (const volatile uint64_t *)(uintptr_t)LAYOUT_VMGENID_GPA(LAYOUT_RAM_MIN_BYTES);
    static uint64_t registers[N_REGISTERS];
    const struct programs_command *programs;
    struct vsock_command command;
    uint64_t old;

    trap_init();
    list_attacks();
    vsock_start();
    blk_start();
    programs = find_programs();
    while (!vsock_was_closed()) {
        vsock_poll();
        /* Before the quiet point there is one command: to say what its registers do. */
        if (vsock_take_command(&command)) {
            msr_report();
            print("end\n");
        }
    }
    check_record();
    /* Before that is said: it may be saved at once, and wake up with the next one. */
    old = *generation;
    print("ready\n");
    idle_until_resumed(generation, old, registers);
    print_value("resumed ", *generation);
    check_registers(registers);
    check_compare(false);
    if (programs != NULL)
        programs_run(find_programs());
    while (!vsock_take_command(&command))
        vsock_poll();
    /* So that the host sees whose stream this is. */
    vsock_send(&command.seed, sizeof(command.seed));
    obey(&command);
}
