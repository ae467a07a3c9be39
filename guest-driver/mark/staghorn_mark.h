/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Marks: what a program says to a recording of its virtual machine, in step with its stores.
 *
 * A mark is an instruction without effect, a NOP with an operand that no compiler writes.  While
 * the machine runs under Staghorn's QEMU and is recorded, the mark becomes an event of the trace,
 * between the stores before it and those after it.  Everywhere else nothing happens: without a
 * recording, under KVM, on other machines, on real processors.  Any program may do it, the kernel
 * as well.
 *
 * This file needs nothing else; C and C++.  docs/manual/marks.md has the kinds of marks and the
 * operands of the instruction.
 */
#ifndef STAGHORN_MARK_H
#define STAGHORN_MARK_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stddef.h>
#endif

enum {
	SG_MARK_KIND_MAX = 63,	 /* octets of the name of a kind */
	SG_MARK_TEXT_MAX = 4096, /* octets of a text; what is beyond is left out */
	SG_MARK_PAGE = 4096,
	SG_MARK_RANGE_PAGES = 64, /* of one instruction; a longer range takes several */
};

#if defined(__x86_64__) || defined(__i386__)

static inline size_t sg_mark_length(const char *text, size_t limit)
{
	size_t n = 0;

	while (n < limit && text[n])
		n++;
	return n;
}

/* Memory that was never touched may not be there when the recorder reads it. */
static inline void sg_mark_touch(const void *address, size_t length)
{
	const volatile char *p = (const volatile char *)address;
	size_t at;

	for (at = 0; at < length; at += SG_MARK_PAGE)
		(void)p[at];
	if (length)
		(void)p[length - 1];
}

/* A mark with a text of so many octets. */
static inline void sg_mark_octets(const char *kind, const void *text, size_t length)
{
	size_t kind_length = sg_mark_length(kind, SG_MARK_KIND_MAX);

	if (length > SG_MARK_TEXT_MAX)
		length = SG_MARK_TEXT_MAX;
	sg_mark_touch(kind, kind_length);
	sg_mark_touch(text, length);
#ifdef __x86_64__
	__asm__ volatile("nopl 0x544d4753(%%rax)"
			 :
			 : "D"(kind), "c"(kind_length), "S"(text), "d"(length)
			 : "memory");
#else
	__asm__ volatile("nopl 0x544d4753(%%eax)"
			 :
			 : "D"(kind), "c"(kind_length), "S"(text), "d"(length)
			 : "memory");
#endif
}

/* A mark of this kind ("state", "acknowledged" or any other), with a text. */
static inline void sg_mark(const char *kind, const char *text)
{
	sg_mark_octets(kind, text, sg_mark_length(text, SG_MARK_TEXT_MAX));
}

/*
 * A mark with a range of the program's addresses, which the recorder translates to the machine's.
 * One mark for each 64 pages.  Pages that this program has not accessed yet may count as outside.
 */
static inline void sg_mark_range(const char *kind, const void *address, size_t length)
{
	size_t kind_length = sg_mark_length(kind, SG_MARK_KIND_MAX);
	const char *at = (const char *)address;

	while (length) {
		size_t n = SG_MARK_RANGE_PAGES * SG_MARK_PAGE - (size_t)at % SG_MARK_PAGE;

		if (n > length)
			n = length;
		/* Not the range: a load is a proof that other processors' stores have left. */
		sg_mark_touch(kind, kind_length);
#ifdef __x86_64__
		__asm__ volatile("nopl 0x524d4753(%%rax)"
				 :
				 : "D"(kind), "c"(kind_length), "S"(at), "d"(n)
				 : "memory");
#else
		__asm__ volatile("nopl 0x524d4753(%%eax)"
				 :
				 : "D"(kind), "c"(kind_length), "S"(at), "d"(n)
				 : "memory");
#endif
		at += n;
		length -= n;
	}
}

#else /* other processors: nobody listens */

static inline void sg_mark_octets(const char *kind, const void *text, size_t length)
{
	(void)kind;
	(void)text;
	(void)length;
}

static inline void sg_mark(const char *kind, const char *text)
{
	(void)kind;
	(void)text;
}

static inline void sg_mark_range(const char *kind, const void *address, size_t length)
{
	(void)kind;
	(void)address;
	(void)length;
}

#endif

/* What is in the range now survives every power cut from here on. */
static inline void sg_mark_durable(const void *address, size_t length)
{
	sg_mark_range("durable", address, length);
}

#endif
