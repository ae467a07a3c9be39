/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Staghorn hardware contract: assertions about the layout of structures.
 */
#ifndef STAGHORN_LAYOUT_H
#define STAGHORN_LAYOUT_H

#if defined(__KERNEL__)
#include <linux/build_bug.h>
#include <linux/stddef.h>
#else
#include <stddef.h>
#include <assert.h>
#endif

#define SG_ASSERT_SIZE(type, size) static_assert(sizeof(type) == (size), "size of " #type)
#define SG_ASSERT_OFFSET(type, member, offset) \
    static_assert(offsetof(type, member) == (offset), "offset of " #type "." #member)

/*
 * The layout of a structure, asserted beside it: its size, then each member with its offset, up to
 * 32 of them: SG_ASSERT_LAYOUT(struct sg_sge, 16, addr, 0, length, 8, lkey, 12);
 */
#define SG_ASSERT_LAYOUT(type, size, ...)                                                      \
    SG_ASSERT_SIZE(type, size);                                                                \
    SG_LAYOUT_CHOOSE(                                                                          \
        __VA_ARGS__, SG_LAYOUT_32, SG_LAYOUT_ODD, SG_LAYOUT_31, SG_LAYOUT_ODD, SG_LAYOUT_30,   \
        SG_LAYOUT_ODD, SG_LAYOUT_29, SG_LAYOUT_ODD, SG_LAYOUT_28, SG_LAYOUT_ODD, SG_LAYOUT_27, \
        SG_LAYOUT_ODD, SG_LAYOUT_26, SG_LAYOUT_ODD, SG_LAYOUT_25, SG_LAYOUT_ODD, SG_LAYOUT_24, \
        SG_LAYOUT_ODD, SG_LAYOUT_23, SG_LAYOUT_ODD, SG_LAYOUT_22, SG_LAYOUT_ODD, SG_LAYOUT_21, \
        SG_LAYOUT_ODD, SG_LAYOUT_20, SG_LAYOUT_ODD, SG_LAYOUT_19, SG_LAYOUT_ODD, SG_LAYOUT_18, \
        SG_LAYOUT_ODD, SG_LAYOUT_17, SG_LAYOUT_ODD, SG_LAYOUT_16, SG_LAYOUT_ODD, SG_LAYOUT_15, \
        SG_LAYOUT_ODD, SG_LAYOUT_14, SG_LAYOUT_ODD, SG_LAYOUT_13, SG_LAYOUT_ODD, SG_LAYOUT_12, \
        SG_LAYOUT_ODD, SG_LAYOUT_11, SG_LAYOUT_ODD, SG_LAYOUT_10, SG_LAYOUT_ODD, SG_LAYOUT_9,  \
        SG_LAYOUT_ODD, SG_LAYOUT_8, SG_LAYOUT_ODD, SG_LAYOUT_7, SG_LAYOUT_ODD, SG_LAYOUT_6,    \
        SG_LAYOUT_ODD, SG_LAYOUT_5, SG_LAYOUT_ODD, SG_LAYOUT_4, SG_LAYOUT_ODD, SG_LAYOUT_3,    \
        SG_LAYOUT_ODD, SG_LAYOUT_2, SG_LAYOUT_ODD, SG_LAYOUT_1, 0)(type, __VA_ARGS__)
/* The argument behind 64 others, which depends on the number of arguments before the names. */
#define SG_LAYOUT_CHOOSE(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, \
                         a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30,  \
                         a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44,  \
                         a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58,  \
                         a59, a60, a61, a62, a63, a64, name, ...)                               \
    name
#define SG_LAYOUT_1(t, m, o) SG_ASSERT_OFFSET(t, m, o)
#define SG_LAYOUT_2(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);    \
    SG_LAYOUT_1(t, __VA_ARGS__)
#define SG_LAYOUT_3(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);    \
    SG_LAYOUT_2(t, __VA_ARGS__)
#define SG_LAYOUT_4(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);    \
    SG_LAYOUT_3(t, __VA_ARGS__)
#define SG_LAYOUT_5(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);    \
    SG_LAYOUT_4(t, __VA_ARGS__)
#define SG_LAYOUT_6(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);    \
    SG_LAYOUT_5(t, __VA_ARGS__)
#define SG_LAYOUT_7(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);    \
    SG_LAYOUT_6(t, __VA_ARGS__)
#define SG_LAYOUT_8(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);    \
    SG_LAYOUT_7(t, __VA_ARGS__)
#define SG_LAYOUT_9(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);    \
    SG_LAYOUT_8(t, __VA_ARGS__)
#define SG_LAYOUT_10(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_9(t, __VA_ARGS__)
#define SG_LAYOUT_11(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_10(t, __VA_ARGS__)
#define SG_LAYOUT_12(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_11(t, __VA_ARGS__)
#define SG_LAYOUT_13(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_12(t, __VA_ARGS__)
#define SG_LAYOUT_14(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_13(t, __VA_ARGS__)
#define SG_LAYOUT_15(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_14(t, __VA_ARGS__)
#define SG_LAYOUT_16(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_15(t, __VA_ARGS__)
#define SG_LAYOUT_17(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_16(t, __VA_ARGS__)
#define SG_LAYOUT_18(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_17(t, __VA_ARGS__)
#define SG_LAYOUT_19(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_18(t, __VA_ARGS__)
#define SG_LAYOUT_20(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_19(t, __VA_ARGS__)
#define SG_LAYOUT_21(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_20(t, __VA_ARGS__)
#define SG_LAYOUT_22(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_21(t, __VA_ARGS__)
#define SG_LAYOUT_23(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_22(t, __VA_ARGS__)
#define SG_LAYOUT_24(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_23(t, __VA_ARGS__)
#define SG_LAYOUT_25(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_24(t, __VA_ARGS__)
#define SG_LAYOUT_26(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_25(t, __VA_ARGS__)
#define SG_LAYOUT_27(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_26(t, __VA_ARGS__)
#define SG_LAYOUT_28(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_27(t, __VA_ARGS__)
#define SG_LAYOUT_29(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_28(t, __VA_ARGS__)
#define SG_LAYOUT_30(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_29(t, __VA_ARGS__)
#define SG_LAYOUT_31(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_30(t, __VA_ARGS__)
#define SG_LAYOUT_32(t, m, o, ...) \
    SG_ASSERT_OFFSET(t, m, o);     \
    SG_LAYOUT_31(t, __VA_ARGS__)

#endif
