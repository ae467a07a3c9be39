# SPDX-License-Identifier: GPL-2.0-or-later
"""The modules of docs/course with one mistake each, and with the exercises solved.

A variant is a module of a step in which files differ: `changes` are {file: [(old text, new text)]};
the file has each old text once."""
import shutil
from collections import namedtuple
from pathlib import Path

COURSE = Path(__file__).resolve().parents[3] / "guest-driver" / "course"

# finds: the rule of the checker, or what the judge says; says: the report's text.
Twin = namedtuple("Twin", "changes finds says", defaults=("",))

TWINS = {
    1: Twin(
        {"step01/main.c": [("\tpci_disable_device(pdev);\n", "")]},
        "enable count: 1",
    ),
    2: Twin(
        {
            "step02/regs.c": [
                ("course_read(r, SG_REG_VERSION)", "readw(r->bar0 + SG_REG_VERSION + 2) << 16")
            ]
        },
        "REG-WIDTH",
        "access of 2 octets to register 0x6",
    ),
    3: Twin(
        {"step03/bringup.c": [("\tcourse_write(r, SG_REG_AEQ_SIZE, aeq->entries);\n", "")]},
        "REG-ENABLE",
        "enabled with unusable ring registers",
    ),
    4: Twin(
        {
            "step04/admin.c": [
                ("\tdma_wmb();\n\tcourse_write(a->regs, SG_REG_ADMIN_DB, ++a->sq.prod);\n", ""),
                (
                    "\tmemcpy(slot, cmd, len);\n",
                    "\tcourse_write(a->regs, SG_REG_ADMIN_DB, ++a->sq.prod);\n"
                    "\tmemcpy(slot, cmd, len);\n",
                ),
            ]
        },
        "ADMIN-RESERVED",
        "command 0, opcode 0xff: reserved fields of its header are not 0",
    ),
    5: Twin(
        {
            "step05/events.c": [
                (
                    "(eq->ring.cons & SG_EQ_DB_CI_MASK)",
                    "sg_index_slot(eq->ring.cons, eq->ring.entries)",
                )
            ]
        },
        "EQ-BACK",
        "event queue 0: consumer index 0, before 63",
    ),
    6: Twin(
        {
            "step06/main.c": [
                (
                    "\tif (s->pd)\n" "\t\tcourse_end(&s->d.admin, SG_ADMIN_DESTROY_PD, s->pd);\n",
                    "",
                ),
                (
                    "static void step06_end(struct step06 *s)\n{\n",
                    "static void step06_end(struct step06 *s)\n{\n"
                    "\tif (s->pd)\n"
                    "\t\tcourse_end(&s->d.admin, SG_ADMIN_DESTROY_PD, s->pd);\n",
                ),
            ]
        },
        "ADMIN-BUSY",
        "command with opcode 0x11: it is in use, or the number is taken",
    ),
    7: Twin(
        {
            "step07/cq.c": [
                ("CQ_ARM, cq->cqn, cq->ring.cons)", "CQ_ARM, cq->cqn, cq->ring.cons + 1)")
            ]
        },
        "CQ-ARM",
        "completion queue 1: consumer index 1, producer index 0",
    ),
    8: Twin(
        {
            "step08/qp.c": [
                ("\tcourse_doorbell(qp->d, SG_DB_SQ, qp->qpn, ++qp->sq.prod);\n", ""),
                (
                    "\tmemset(h, 0, COURSE_SQ_STRIDE);\n",
                    "\tcourse_doorbell(qp->d, SG_DB_SQ, qp->qpn, qp->sq.prod + 1);\n"
                    "\tmemset(h, 0, COURSE_SQ_STRIDE);\n",
                ),
                ("h->index = cpu_to_le32(qp->sq.prod);", "h->index = cpu_to_le32(qp->sq.prod++);"),
            ]
        },
        "ENTRY-INDEX",
        "send entry 1 is not in memory at its doorbell: it has index 0",
    ),
    9: Twin(
        {"step09/pair.c": [("access = SG_ACCESS_LOCAL_WRITE | ", "access = ")]},
        "ENTRY-ACCESS",
        "qp 2: receive entry 0: LOC_PROT_ERR",
    ),
    10: Twin(
        {
            "step09/pair.c": [
                ("\tcourse_cq_destroy(&p->cq);\n", ""),
                (
                    "\tcourse_qp_destroy(&p->qp[0]);\n",
                    "\tcourse_cq_destroy(&p->cq);\n\tcourse_qp_destroy(&p->qp[0]);\n",
                ),
            ]
        },
        "ADMIN-BUSY",
        "command with opcode 0x19: it is in use, or the number is taken",
    ),
}

# By step and exercise; without changes the module of the step solves it.
SOLUTIONS = {
    (1, 1): (
        {
            "step01/main.c": [
                (
                    '\tpci_info(pdev, "claimed',
                    "\tfor (int i = 0; i <= SG_BAR_MSIX; i += 2)\n"
                    '\t\tpci_info(pdev, "bar %d: %llu octets\\n", i,\n'
                    "\t\t\t (u64)pci_resource_len(pdev, i));\n"
                    '\tpci_info(pdev, "claimed',
                )
            ]
        }
    ),
    (2, 1): (
        {
            "step02/main.c": [
                (
                    "\tpci_set_drvdata(pdev, s);\n\treturn 0;\n",
                    "\tpci_set_drvdata(pdev, s);\n"
                    "\tu64 before = readq(s->regs.bar2 + SG_DB_CLOCK);\n\n"
                    "\tusleep_range(1000, 2000);\n"
                    '\tpci_info(pdev, "clock %llu ns later\\n",\n'
                    "\t\t readq(s->regs.bar2 + SG_DB_CLOCK) - before);\n"
                    "\treturn 0;\n",
                ),
                (
                    "#include <linux/module.h>\n",
                    "#include <linux/delay.h>\n#include <linux/module.h>\n",
                ),
            ]
        }
    ),
    (2, 2): {},
    (3, 1): (
        {
            "step03/bringup.c": [
                (
                    "int course_test_dma(const struct course_regs *r)\n",
                    "static int test(const struct course_regs *r, u32 len, u32 cmd, u8 invert)\n",
                ),
                ("page = dma_alloc_coherent(dev, SZ_4K,", "page = dma_alloc_coherent(dev, len,"),
                ("SG_REG_TEST_DMA_LEN, SZ_4K", "SG_REG_TEST_DMA_LEN, len"),
                (
                    "SG_REG_TEST_DMA_CMD, SG_TEST_DMA_FILL",
                    "SG_REG_TEST_DMA_CMD, SG_TEST_DMA_FILL);\n"
                    "\tif (cmd != SG_TEST_DMA_FILL)\n"
                    "\t\tcourse_write(r, SG_REG_TEST_DMA_CMD, cmd",
                ),
                ("for (i = 0; i < SZ_4K && !status; i++)", "for (i = 0; i < len && !status; i++)"),
                ("if (page[i] != (u8)i)", "if (page[i] != (u8)(i ^ invert))"),
                ("if (status || i < SZ_4K)", "if (status || i < len)"),
                (
                    "dma_free_coherent(dev, SZ_4K, page, dma);\n\treturn ret;\n}\n",
                    "dma_free_coherent(dev, len, page, dma);\n\treturn ret;\n}\n\n"
                    "int course_test_dma(const struct course_regs *r)\n{\n"
                    "\tstatic const u32 lengths[] = { 1, SZ_4K, SG_TEST_DMA_MAX };\n"
                    "\tint i, ret = 0;\n\n"
                    "\tfor (i = 0; i < ARRAY_SIZE(lengths) && !ret; i++) {\n"
                    "\t\tret = test(r, lengths[i], SG_TEST_DMA_FILL, 0);\n"
                    "\t\tif (!ret)\n"
                    "\t\t\tret = test(r, lengths[i], SG_TEST_DMA_INVERT, 0xff);\n"
                    "\t}\n\treturn ret;\n}\n",
                ),
            ]
        }
    ),
    (3, 2): {},
    (4, 1): (
        {
            "step04/admin.c": [
                (
                    "\tdma_wmb();\n\tcourse_write(a->regs, SG_REG_ADMIN_DB, ++a->sq.prod);\n}\n",
                    "\ta->sq.prod++;\n}\n",
                ),
                (
                    "\t\tcourse_submit(a, cmd, len);\n\t\tret = course_wait(a);\n",
                    "\t\tfor (i = 0; i < 8; i++)\n"
                    "\t\t\tcourse_submit(a, cmd, len);\n"
                    "\t\tdma_wmb();\n"
                    "\t\tcourse_write(a->regs, SG_REG_ADMIN_DB, a->sq.prod);\n"
                    "\t\tret = course_wait(a);\n"
                    "\t\tfor (i = 0; i < 7 && !ret; i++) {\n"
                    "\t\t\tcourse_take(a, rsp);\n"
                    "\t\t\tret = course_wait(a);\n"
                    "\t\t}\n",
                ),
                ("\tint ret = -EIO;\n\n\tmutex_lock", "\tint i, ret = -EIO;\n\n\tmutex_lock"),
            ]
        }
    ),
    (4, 2): {},
    (5, 1): {},
    (6, 1): {
        "step06/main.c": [
            ("#define STEP06_PAGES 16", "#define STEP06_PAGES 600"),
            ("s->list[s->mapped] = cpu", "s->list[512 + s->mapped] = cpu"),
            ("le64_to_cpu(s->list[s->mapped])", "le64_to_cpu(s->list[512 + s->mapped])"),
            (
                "(dev, SZ_4K, &s->list_dma",
                "(dev, 3 * SZ_4K, &s->list_dma",
            ),
            ("dma_free_coherent(dev, SZ_4K, s->list", "dma_free_coherent(dev, 3 * SZ_4K, s->list"),
            (
                "\tpages = course_scattered(s->list_dma, STEP06_PAGES);\n",
                "\tpages = course_scattered(s->list_dma, STEP06_PAGES);\n"
                "\tpages.levels = 2;\n"
                "\ts->list[0] = cpu_to_le64(s->list_dma + SZ_4K);\n"
                "\ts->list[1] = cpu_to_le64(s->list_dma + 2 * SZ_4K);\n",
            ),
        ]
    },
    (7, 1): {
        "step07/cq.c": [
            (
                "\treturn course_make(&d->admin, &c, sizeof(c), &cq->cqn);\n",
                "\tret = course_make(&d->admin, &c, sizeof(c), &cq->cqn);\n"
                "\tif (ret)\n\t\treturn ret;\n"
                "\tm.cqn = cpu_to_le32(cq->cqn);\n"
                "\treturn course_command(&d->admin, &m, sizeof(m), &rsp);\n",
            ),
            (
                "\tint ret = course_ring_alloc(",
                "\tstruct sg_cmd_modify_cq m = {\n"
                "\t\t.hdr.opcode = SG_ADMIN_MODIFY_CQ,\n"
                "\t\t.count = cpu_to_le16(4),\n\t\t.period = cpu_to_le16(100),\n\t};\n"
                "\tstruct sg_admin_rsp rsp;\n"
                "\tint ret = course_ring_alloc(",
            ),
        ]
    },
    (8, 1): {
        "step08/main.c": [
            ("\tunsigned int flushed[2] = {};\n", "\tstatic unsigned int flushed[2];\n"),
            (
                "\tif (!ret)\n\t\tret = step08_use(s);\n",
                "\tif (!ret)\n\t\tret = step08_use(s);\n"
                "\tfor (int i = 0; i < 2 && !ret; i++) {\n"
                "\t\tret = course_qp_modify(&s->qp, SG_QP_IDLE);\n"
                "\t\tif (!ret)\n\t\t\tret = step08_use(s);\n\t}\n",
            ),
        ]
    },
    (9, 1): {
        "step09/conn.c": [
            (
                "\treturn course_make(&qp->d->admin, &c, sizeof(c), conn);\n",
                "\tbuf = dma_alloc_coherent(dev, 8, &dma, GFP_KERNEL);\n"
                "\tif (!buf)\n\t\treturn -ENOMEM;\n"
                '\tmemcpy(buf, "hello", 5);\n'
                "\tc.pdata_addr = cpu_to_le64(dma);\n\tc.pdata_len = cpu_to_le16(5);\n"
                "\tret = course_make(&qp->d->admin, &c, sizeof(c), conn);\n"
                "\tdma_free_coherent(dev, 8, buf, dma);\n\treturn ret;\n",
            ),
            (
                "\tstruct sg_cmd_connect c = {\n\t\t.hdr.opcode = SG_ADMIN_CONNECT,\n",
                "\tstruct device *dev = &qp->d->regs.pdev->dev;\n"
                "\tdma_addr_t dma;\n\tvoid *buf;\n\tint ret;\n"
                "\tstruct sg_cmd_connect c = {\n\t\t.hdr.opcode = SG_ADMIN_CONNECT,\n",
            ),
        ],
        "step09/pair.c": [
            (
                "\tp->conn[1] = le32_to_cpu(e.conn);\n",
                "\tp->conn[1] = le32_to_cpu(e.conn);\n"
                "\tstruct sg_cm_data *data = kzalloc(sizeof(*data), GFP_KERNEL);\n\n"
                "\tif (!data)\n\t\treturn -ENOMEM;\n"
                "\tret = course_query(&p->d.admin, SG_ADMIN_CM_DATA, p->conn[1], data,\n"
                "\t\t\t   sizeof(*data));\n"
                "\tif (!ret)\n"
                '\t\tpci_info(p->d.regs.pdev, "private data: %.*s\\n",\n'
                "\t\t\t le16_to_cpu(data->pdata_len), data->pdata);\n"
                "\tkfree(data);\n\tif (ret)\n\t\treturn ret;\n",
            ),
            ('#include "step09/pair.h"\n', '#include <linux/slab.h>\n\n#include "step09/pair.h"\n'),
        ],
    },
    (10, 1): {},
}


def text_of(file, changes):
    """The file with the changes."""
    text = (COURSE / file).read_text()
    for old, new in changes:
        assert text.count(old) == 1, (file, old, text.count(old))
        text = text.replace(old, new)
    return text


def name_of(kind, step, number=None):
    """The module of a variant: twin04, solved0401."""
    return "%s%02d%s" % (kind, step, "" if number is None else "%02d" % number)


def variants():
    """(name of the module, step, changes) of all that differ from the step's module."""
    for step, twin in TWINS.items():
        yield name_of("twin", step), step, twin.changes
    for (step, number), changes in SOLUTIONS.items():
        if changes:
            yield name_of("solved", step, number), step, changes


def arrange(folder):
    """Writes the sources of all steps and variants, and a Kbuild, into an empty folder."""
    shutil.copytree(COURSE, folder, dirs_exist_ok=True)
    text = (COURSE / "Kbuild").read_text()
    for name, step, changes in variants():
        words = "$(step%02d-y)" % step
        for file, each in changes.items():
            place, base = file.split("/")
            other = "%s/%s_%s" % (place, name, base)
            (Path(folder) / other).write_text(text_of(file, each))
            words = "$(subst %s,%s,%s)" % (file[:-1] + "o", other[:-1] + "o", words)
        text += "obj-m += %s.o\n%s-y := %s\n" % (name, name, words)
    (Path(folder) / "Kbuild").write_text(text)
