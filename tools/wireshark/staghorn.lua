-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Extensions of RDMAP in Wireshark and tshark: Atomic Operations and Immediate Data (RFC 7306),
-- RDMA Flush, RDMA Verify and Atomic Write (draft-talpey-rdma-commit).
--
--     tshark -X lua_script:tools/wireshark/staghorn.lua -r capture.pcap
--     wireshark -X lua_script:tools/wireshark/staghorn.lua capture.pcap
--
-- Do not run it as root: Wireshark 4.4 then silently ignores scripts.
--
-- Wireshark knows MPA, DDP and RDMAP, with opcodes of four bits.  This is a post-dissector: it
-- looks up where the DDP headers of a packet are, reads the opcode with five bits and, if it
-- is one of the extensions', adds its own tree and a note in the Info column.  Ignore what the
-- built-in dissector says about a message of the draft: it takes an Atomic Write for a Write, and
-- its Response for a truncated Read Request ("Malformed Packet").  It knows Atomic Requests and
-- Responses itself, but not Immediate Data.
--
-- Messages that RFC or draft forbid are reported as malformed; see docs/protocol.md.
-- Preferences (Protocols, Staghorn): which draft, and whether to read five bits of opcode at all.
--
-- No bit operators: those of Lua 5.2 (Wireshark 4.0) and 5.4 (4.4) have nothing in common.

local staghorn = Proto("staghorn", "RDMAP extensions (RFC 7306, draft-talpey-rdma-commit)")

staghorn.prefs.draft = Pref.enum("Draft", 2, "Draft by whose rules messages are checked",
                                 { { 1, "-01", 1 }, { 2, "-02", 2 } }, true)
staghorn.prefs.wide = Pref.bool("Opcodes have five bits", true,
                                "Off: 0x10 and 0x11 are RFC 5040's Write and Read Request")

local DDP_TAGGED, DDP_UNTAGGED = 14, 18
local QN_SEND, QN_REQUEST, QN_RESPONSE = 0, 1, 3
local HASH_MAX = 64

-- least, most: octets after the DDP header.
local MESSAGES = {
    [0x08] = { name = "Immediate Data", qn = QN_SEND, least = 8, most = 8, rfc = true },
    [0x09] = { name = "Immediate Data with Solicited Event", qn = QN_SEND, least = 8, most = 8,
               rfc = true },
    [0x0a] = { name = "Atomic Request", qn = QN_REQUEST, least = 52, most = 52, rfc = true },
    [0x0b] = { name = "Atomic Response", qn = QN_RESPONSE, least = 12, most = 12, rfc = true },
    [0x0c] = { name = "RDMA Flush Request", qn = QN_REQUEST, least = 20, most = 20 },
    [0x0d] = { name = "RDMA Flush Response", qn = QN_RESPONSE, least = 0, most = 0 },
    [0x0e] = { name = "RDMA Verify Request", qn = QN_REQUEST, least = 16, most = 16 + HASH_MAX },
    [0x0f] = { name = "RDMA Verify Response", qn = QN_RESPONSE, least = 0, most = HASH_MAX },
    [0x10] = { name = "Atomic Write Request", qn = QN_REQUEST, least = 24, most = 24 },
    [0x11] = { name = "Atomic Write Response", qn = QN_RESPONSE, least = 0, most = 0 },
}
local NAMES = {}
for opcode, message in pairs(MESSAGES) do
    NAMES[opcode] = message.name
end

local ATOMICS = { [0] = "FetchAdd", [2] = "CmpSwap" }

local f = staghorn.fields
f.opcode = ProtoField.uint8("staghorn.opcode", "Opcode", base.HEX, NAMES, 0x1f)
f.inv_stag = ProtoField.uint32("staghorn.inv_stag", "Invalidate STag", base.HEX)
f.qn = ProtoField.uint32("staghorn.qn", "Queue number", base.DEC)
f.msn = ProtoField.uint32("staghorn.msn", "Message sequence number", base.DEC)
f.stag = ProtoField.uint32("staghorn.stag", "Data Sink STag", base.HEX)
f.length = ProtoField.uint32("staghorn.length", "Data Sink Length", base.DEC)
f.to = ProtoField.uint64("staghorn.to", "Data Sink Tagged Offset", base.HEX)
f.flags = ProtoField.uint32("staghorn.flags", "Flush disposition flags", base.HEX)
f.region = ProtoField.bool("staghorn.flags.r", "R: all of the region", 32, nil, 0x4)
f.global = ProtoField.bool("staghorn.flags.g", "G: global visibility", 32, nil, 0x2)
f.persistent = ProtoField.bool("staghorn.flags.p", "P: persistence", 32, nil, 0x1)
f.hash = ProtoField.bytes("staghorn.hash", "Hash value")
f.data = ProtoField.uint64("staghorn.data", "Data", base.HEX)
f.imm = ProtoField.bytes("staghorn.imm", "Immediate data")
f.aop = ProtoField.uint32("staghorn.aop", "Atomic operation", base.DEC, ATOMICS, 0xf)
f.id = ProtoField.uint32("staghorn.id", "Request identifier", base.HEX)
f.rstag = ProtoField.uint32("staghorn.rstag", "Remote STag", base.HEX)
f.rto = ProtoField.uint64("staghorn.rto", "Remote Tagged Offset", base.HEX)
f.operand = ProtoField.uint64("staghorn.operand", "Add or swap data", base.HEX)
f.mask = ProtoField.uint64("staghorn.mask", "Add or swap mask", base.HEX)
f.compare = ProtoField.uint64("staghorn.compare", "Compare data", base.HEX)
f.compare_mask = ProtoField.uint64("staghorn.compare_mask", "Compare mask", base.HEX)
f.original = ProtoField.uint64("staghorn.original", "Original value", base.HEX)
f.request = ProtoField.framenum("staghorn.request_in", "Answers the request in frame", base.NONE,
                                frametype.REQUEST)
f.time = ProtoField.double("staghorn.time", "Seconds since the request")

local e = {
    short = ProtoExpert.new("staghorn.short", "Message cut short", expert.group.MALFORMED,
                            expert.severity.ERROR),
    long = ProtoExpert.new("staghorn.long", "Too many octets", expert.group.MALFORMED,
                           expert.severity.ERROR),
    header = ProtoExpert.new("staghorn.header", "DDP or RDMAP header does not fit the opcode",
                             expert.group.MALFORMED, expert.severity.ERROR),
    value = ProtoExpert.new("staghorn.value", "Value that RFC or draft do not allow",
                            expert.group.MALFORMED, expert.severity.ERROR),
}
staghorn.experts = { e.short, e.long, e.header, e.value }

local ddp_header = Field.new("iwarp_ddp")
local mpa_length = Field.new("iwarp_mpa.ulpdulength")
local tcp_stream = Field.new("tcp.stream")

-- Maps stream and sender to the requests: [MSN] = ordinal, [-ordinal] = { frame, time }.
local requests = {}

function staghorn.init()
    requests = {}
end

local function sender(pinfo, reverse)
    local stream = tcp_stream()
    local from = reverse and pinfo.dst_port or pinfo.src_port

    return (stream and tostring(stream.value) or "?") .. "/" .. tostring(from)
end

-- Requests of queue 1 are answered in order on queue 3, so the nth of them has MSN n there.
local function note_request(pinfo, msn)
    local key = sender(pinfo, false)
    local seen = requests[key] or { count = 0 }

    requests[key] = seen
    if not seen[msn] then
        seen.count = seen.count + 1
        seen[msn] = seen.count
        seen[-seen.count] = { frame = pinfo.number, time = pinfo.abs_ts }
    end
end

local function show_request(pinfo, tree, msn)
    local seen = requests[sender(pinfo, true)]
    local request = seen and seen[-msn]

    if request then
        tree:add(f.request, request.frame):set_generated()
        tree:add(f.time, pinfo.abs_ts - request.time):set_generated()
    end
end

-- The length of the nth ULPDU of the packet, whose DDP header is at `at`.  MPA's length field is
-- right before it; if not, Wireshark has removed markers and the header is in a copy.  Then the
-- nth field is used.
local function ulpdu_length(tvb, at, n, lengths)
    local length = lengths[n] and lengths[n].value or tvb:len()

    for _, info in ipairs(lengths) do
        if info.offset == at - 2 and info.source and info.source:len() == tvb:len() then
            length = info.value
        end
    end
    return math.min(length, tvb:len() - at)
end

-- The messages after an Atomic Write Response in the same segment: the built-in dissector takes it
-- for a truncated Read Request and stops there.  MPA without markers: length, ULPDU, pad, CRC.
local function each_behind(tvb, at, visit)
    while at + 2 + DDP_TAGGED <= tvb:len() do
        local length = tvb(at, 2):uint()

        if length < DDP_TAGGED or at + 2 + length > tvb:len() then
            return
        end
        visit(tvb(at + 2, length))
        at = at + 2 + length + (-(length + 2)) % 4 + 4
    end
end

-- Handles each ULPDU of the packet, as far as it was captured.
local function each_ulpdu(visit)
    local lengths, last = { mpa_length() }, nil

    for n, info in ipairs({ ddp_header() }) do
        local tvb, at = info.source, info.offset

        if tvb and tvb:len() - at >= DDP_TAGGED then
            last = { tvb = tvb, at = at, length = ulpdu_length(tvb, at, n, lengths) }
            visit(tvb(at, last.length))
        end
    end
    if last and last.at >= 2 and last.tvb(last.at, 2):uint() % 32 == 0x11 then
        each_behind(last.tvb, last.at + last.length + (-(last.length + 2)) % 4 + 4, visit)
    end
end

-- Calls complain(expert, text) for each error in the header; the message must be untagged.
local function check_header(range, message, complain)
    local inv = range(2, 4):uint()

    if range:bitfield(1, 1) == 0 then
        complain(e.header, "not the last segment; these messages have only one")
    end
    if range:bitfield(8, 2) ~= 1 then
        complain(e.header, "RDMAP version is not 1")
    end
    if range(6, 4):uint() ~= message.qn then
        complain(e.header, "belongs on queue " .. message.qn)
    end
    if message.qn == QN_REQUEST and not message.rfc and inv ~= 0 and staghorn.prefs.draft == 2 then
        complain(e.value, "draft -02: Invalidate STag is not 0")
    end
end

local function check_size(size, message, complain)
    if size < message.least then
        complain(e.short, ("%d octets instead of at least %d"):format(size, message.least))
    elseif size > message.most then
        complain(e.long, ("%d octets instead of at most %d"):format(size, message.most))
    end
    return size >= message.least
end

local function show_flags(tree, range, complain)
    local flags = range:uint()
    local known = staghorn.prefs.draft == 2 and 8 or 4
    local node = tree:add(f.flags, range)
    local letters = ""

    node:add(f.region, range)
    node:add(f.global, range)
    node:add(f.persistent, range)
    if flags >= known then
        complain(e.value, "disposition flag that the draft does not define")
    end
    for bit, letter in ipairs({ "P", "G", "R" }) do
        if math.floor(flags / 2 ^ (bit - 1)) % 2 == 1 then
            letters = letters .. letter
        end
    end
    return letters == "" and "-" or letters
end

local function hex(range)
    return "0x" .. range:uint64():tohex()
end

-- show_body() for the four messages of RFC 7306.
local function show_7306(opcode, tree, body, complain)
    local operation

    if opcode < 0x0a then
        tree:add(f.imm, body)
        return hex(body)
    elseif opcode == 0x0b then
        tree:add(f.id, body(0, 4))
        tree:add(f.original, body(4, 8))
        return ("id %d original %s"):format(body(0, 4):uint(), hex(body(4, 8)))
    end
    operation = body(0, 4):uint() % 16
    tree:add(f.aop, body(0, 4))
    tree:add(f.id, body(4, 4))
    tree:add(f.rstag, body(8, 4))
    tree:add(f.rto, body(12, 8))
    tree:add(f.operand, body(20, 8))
    tree:add(f.mask, body(28, 8))
    tree:add(f.compare, body(36, 8))
    tree:add(f.compare_mask, body(44, 8))
    if not ATOMICS[operation] then
        complain(e.value, ("operation %d is not assigned"):format(operation))
    end
    return ("%s id %d STag 0x%08x TO %s data %s"):format(
        ATOMICS[operation] or "operation " .. operation, body(4, 4):uint(), body(8, 4):uint(),
        hex(body(12, 8)), hex(body(20, 8)))
end

-- Dissects what follows the DDP header; returns a summary.
local function show_body(opcode, tree, body, size, complain)
    local summary

    if MESSAGES[opcode].rfc then
        return show_7306(opcode, tree, body, complain)
    end
    if opcode == 0x0f then
        if size == 0 then
            if staghorn.prefs.draft == 2 then
                complain(e.short, "draft -02: the hash is empty")
            end
            return ""
        end
        tree:add(f.hash, body(0, math.min(size, HASH_MAX)))
        return ("hash of %d octets"):format(size)
    elseif MESSAGES[opcode].qn == QN_RESPONSE then
        return ""
    end
    tree:add(f.stag, body(0, 4))
    tree:add(f.length, body(4, 4))
    tree:add(f.to, body(8, 8))
    summary = ("STag 0x%08x TO 0x%s length %d"):format(body(0, 4):uint(),
                                                       body(8, 8):uint64():tohex(),
                                                       body(4, 4):uint())
    if opcode == 0x0c then
        return summary .. " " .. show_flags(tree, body(16, 4), complain)
    elseif opcode == 0x10 then
        tree:add(f.data, body(16, 8))
        if body(4, 4):uint() ~= 8 then
            complain(e.value, "Length is not 8")
        end
        return summary .. " data 0x" .. body(16, 8):uint64():tohex()
    elseif size > 16 then
        tree:add(f.hash, body(16, math.min(size - 16, HASH_MAX)))
        return summary .. (" expects a hash of %d octets"):format(size - 16)
    end
    return summary
end

local function show(opcode, range, pinfo, root)
    local message = MESSAGES[opcode]
    local tree = root:add(staghorn, range, message.name)
    local size, fine, summary = range:len() - DDP_UNTAGGED, true, ""
    local function complain(kind, text)
        fine = false
        tree:add_proto_expert_info(kind, text)
    end

    tree:add(f.opcode, range(1, 1))
    if range:bitfield(0, 1) == 1 then
        complain(e.header, "tagged; these messages are not")
    elseif size < 0 then
        complain(e.short, "too short for an untagged DDP header")
    else
        tree:add(f.inv_stag, range(2, 4))
        tree:add(f.qn, range(6, 4))
        tree:add(f.msn, range(10, 4))
        check_header(range, message, complain)
        if check_size(size, message, complain) then
            local body = size > 0 and range(DDP_UNTAGGED, size) or nil

            summary = show_body(opcode, tree, body, size, complain)
        end
        if message.qn == QN_REQUEST then
            note_request(pinfo, range(10, 4):uint())
        elseif message.qn == QN_RESPONSE then
            show_request(pinfo, tree, range(10, 4):uint())
        end
    end
    tree:append_text(summary ~= "" and ", " .. summary or "")
    pinfo.cols.info:append((" [%s%s%s]"):format(message.name,
                                                summary ~= "" and " " .. summary or "",
                                                fine and "" or ", malformed"))
end

function staghorn.dissector(_, pinfo, root)
    each_ulpdu(function(range)
        local opcode = range:bitfield(11, 5)

        if not staghorn.prefs.wide then
            opcode = opcode % 16
        end
        if MESSAGES[opcode] then
            show(opcode, range, pinfo, root)
        end
    end)
end

register_postdissector(staghorn)
