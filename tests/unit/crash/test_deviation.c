/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Deviations: which answers, and which stores belong to them. */
#include "crash/deviation.h"
#include "tap.h"

static GArray *asked, *lost;

static void ask(uint8_t what, uint16_t unit, uint32_t qpn, uint64_t addr, uint32_t taken)
{
    struct sg_crash_asked q = {
        .what = what, .unit = unit, .qpn = qpn, .addr = addr, .n = 3, .taken = taken
    };

    g_array_append_val(asked, q);
}

static void lose(uint8_t what, uint16_t unit, uint32_t qpn, uint64_t addr, uint64_t seq)
{
    struct sg_persist_lost x = { .what = what, .unit = unit, .qpn = qpn, .addr = addr, .seq = seq };

    g_array_append_val(lost, x);
}

/* The deviations as text: "line 0=1 of 3: 5 6, ..." */
static void expect(const char *want)
{
    struct sg_crash_deviations d;
    GString *text = g_string_new(NULL);

    sg_crash_deviations_init(&d);
    sg_crash_deviations_set(&d, asked, lost);
    for (guint i = 0; i < d.all->len; i++) {
        const struct sg_crash_deviation *x = &g_array_index(d.all, struct sg_crash_deviation, i);

        g_string_append_printf(text, "%s%s ", i ? ", " : "", sg_crash_asked_name(&x->asked));
        if (sg_crash_asked_agent(&x->asked, text)) {
            g_string_append_c(text, ' ');
        }
        g_string_append_printf(text, "%u=%u:", x->question, x->asked.taken);
        for (guint k = 0; k < x->lost_count; k++) {
            g_string_append_printf(text, " %" PRIu64, g_array_index(d.lost, uint64_t, x->lost + k));
        }
    }
    T_EQ_STR(text->str, want);
    g_string_free(text, TRUE);
    sg_crash_deviations_fini(&d);
    g_array_set_size(asked, 0);
    g_array_set_size(lost, 0);
}

static void of_lines(void)
{
    ask(SG_PERSIST_CHOICE_LINE, 0, 0, 0x1000, 2);
    ask(SG_PERSIST_CHOICE_LINE, 0, 0, 0x1040, 1);
    ask(SG_PERSIST_CHOICE_LINE, 0, 0, 0x1080, 0);
    lose(SG_PERSIST_CHOICE_LINE, 0, 0, 0x1080, 9);
    lose(SG_PERSIST_CHOICE_LINE, 0, 0, 0x1040, 7);
    lose(SG_PERSIST_CHOICE_LINE, 0, 0, 0x1080, 8);
    lose(SG_PERSIST_CHOICE_LINE, 0, 0, 0x1080, 8);
    lose(SG_PERSIST_CHOICE_LINE, 0, 0, 0x1080, 0);
    expect("line 1=1: 7, line 2=0: 8 9");
    expect("");
}

static void of_queues(void)
{
    ask(SG_PERSIST_CHOICE_BUFFER, 3, 0, 0, 0);
    ask(SG_PERSIST_CHOICE_POSTED, 1, 0, 0, 1);
    ask(SG_PERSIST_CHOICE_PLACED, 2, 7, 0, 1);
    ask(SG_PERSIST_CHOICE_PLACED, 2, 8, 0, 2);
    ask(SG_PERSIST_CHOICE_ORDER, 0, 0, 0, 0);
    lose(SG_PERSIST_CHOICE_BUFFER, 3, 0, 0, 4);
    lose(SG_PERSIST_CHOICE_POSTED, 1, 6, 0, 5);
    lose(SG_PERSIST_CHOICE_PLACED, 1, 6, 0, 6); /* not asked about: behind S1 */
    lose(SG_PERSIST_CHOICE_PLACED, 2, 7, 0, 10);
    expect("buffer vCPU 3 0=0: 4, queue adapter 1 1=1: 5 6, placement adapter 2, QP 7 2=1: 10, "
           "order 4=0:");
}

static const struct t_case cases[] = {
    { "of lines", of_lines },
    { "of queues and buffers", of_queues },
};

int main(int argc, char **argv)
{
    int status;

    asked = g_array_new(FALSE, FALSE, sizeof(struct sg_crash_asked));
    lost = g_array_new(FALSE, FALSE, sizeof(struct sg_persist_lost));
    status = t_main(cases, G_N_ELEMENTS(cases), argc, argv);
    g_array_unref(asked);
    g_array_unref(lost);
    return status;
}
