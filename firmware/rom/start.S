/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Expansion ROM: header, entry, and what C cannot express in real mode.
 *
 * The BIOS copies the ROM to a segment of its own below 1 MiB and makes a far call to offset 3,
 * with the function's bus, device and function number in %ax.  `sg-flash rom` sets length and
 * checksum.  PCI Firmware Specification 3.0, chapter 5.
 */
    .code16gcc
    .section .head, "ax"
    .globl rom_head
rom_head:
    .word 0xaa55
    .byte 0                         /* length in units of 512 octets */
    jmp entry
    .org 0x18
    .word pcir                      /* main.c */
    .word pnp                       /* main.c */
/*
 * gcc's 16-bit code addresses its stack with all of %esp and its data with %ds, which is the ROM's
 * segment.  No function takes the address of a local variable, because that would be in %ss.
 */
entry:
    pushal
    pushw %ds
    pushw %es
    movl %esp, %ebp
    movzwl %sp, %esp
    movw %cs, %cx
    movw %cx, %ds
    movw %cx, %es
    cld
    movzwl %ax, %eax
    calll rom_main
    movl %ebp, %esp
    popw %es
    popw %ds
    popal
    xorw %ax, %ax                   /* nothing to boot from, no interrupt taken */
    lretw

    .text
/* u32 mmio_read(u32 address): one 32-bit load from anywhere, through a flat %gs. */
    .globl mmio_read
mmio_read:
    pushfl
    pushw %gs
    pushl %ebx
    subl $16, %esp
    cli
    sgdtl %ss:8(%esp)
    xorl %ecx, %ecx
    movw %cs, %cx
    shll $4, %ecx
    addl $gdt, %ecx
    movw $15, %ss:(%esp)
    movl %ecx, %ss:2(%esp)
    lgdtl %ss:(%esp)
    movl %cr0, %ebx
    movl %ebx, %ecx
    orb $1, %cl
    movl %ecx, %cr0
    jmp 1f
1:  movw $8, %cx
    movw %cx, %gs
    movl %ebx, %cr0
    jmp 2f
2:  movl %gs:(%eax), %eax
    lgdtl %ss:8(%esp)
    addl $16, %esp
    popl %ebx
    popw %gs
    popfl
    retl

    .balign 8
gdt:
    .quad 0
    .quad 0x008f92000000ffff        /* data, base 0, 4 GiB */

/* u32 pci_config(u32 bdf, u32 reg): INT 1Ah, read a double word; all ones on failure. */
    .globl pci_config
pci_config:
    pushl %ebx
    pushl %edi
    movl %eax, %ebx
    movl %edx, %edi
    movw $0xb10a, %ax
    int $0x1a
    movl %ecx, %eax
    jnc 1f
    orl $-1, %eax
1:  popl %edi
    popl %ebx
    retl

/* void screen_char(u32 c): INT 10h, teletype. */
    .globl screen_char
screen_char:
    pushl %ebx
    pushl %ebp
    movb $0x0e, %ah
    movw $0x0007, %bx
    int $0x10
    popl %ebp
    popl %ebx
    retl

/* u32 screen_vector(void): the handler of INT 10h, segment << 16 | offset. */
    .globl screen_vector
screen_vector:
    pushw %ds
    xorw %ax, %ax
    movw %ax, %ds
    movl 0x40, %eax
    popw %ds
    retl

/* u32 screen_mode(void): INT 10h, get mode; %ax is unchanged if there is no handler. */
    .globl screen_mode
screen_mode:
    pushl %ebx
    pushl %ebp
    movl $0x0f00, %eax
    int $0x10
    movzwl %ax, %eax
    popl %ebp
    popl %ebx
    retl

    .section .note.GNU-stack, "", @progbits
