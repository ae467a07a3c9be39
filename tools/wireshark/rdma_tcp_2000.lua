-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- RDMA/TCP of September 2000 in Wireshark and tshark (docs/wire-2000.md).
--
--     tshark -X lua_script:tools/wireshark/rdma_tcp_2000.lua -r capture.pcap
--
-- Do not run it as root: Wireshark 4.4 then silently ignores scripts.
--
-- A connection is recognized by its first segment, a setup message.  For captures without it:
-- "Decode As", or -d tcp.port==4791,rdma_tcp_2000.
--
-- The CRC of each segment is checked: rdma_tcp_2000.crc.status is 1 if it is good and 0 if it is bad,
-- and the filter rdma_tcp_2000.crc.bad finds the segments whose CRC is bad.  For segments that the
-- capture has only in part (snaplen) the status is 2.

local proto = Proto("rdma_tcp_2000", "RDMA/TCP of September 2000")

local SEND, WRITE, READ_REQUEST, READ_RESPONSE = 0, 1, 2, 3
local TYPES = { [0] = "Send", "Write", "Read Request", "Read Response" }
local KINDS = { "Request", "Accept", "Reject" }
local VERSION, SETUP, HDR_MIN, LENGTH_END = 1, 0x80, 24, 4
local BAD, GOOD, UNVERIFIED = 0, 1, 2
local STATUS = { [0] = "Bad", "Good", "Unverified" }

local f = {
    version = ProtoField.uint8("rdma_tcp_2000.version", "Version"),
    setup = ProtoField.bool("rdma_tcp_2000.setup", "Setup", 8, nil, 0x80),
    solicited = ProtoField.bool("rdma_tcp_2000.solicited", "Solicited event", 8, nil, 0x40),
    begin = ProtoField.bool("rdma_tcp_2000.begin", "Begin", 8, nil, 0x08),
    last = ProtoField.bool("rdma_tcp_2000.end", "End", 8, nil, 0x04),
    type = ProtoField.uint8("rdma_tcp_2000.type", "Type", base.DEC, TYPES, 0x03),
    length = ProtoField.uint16("rdma_tcp_2000.length", "Segment Length"),
    conn_id = ProtoField.uint64("rdma_tcp_2000.conn_id", "Connection ID", base.HEX),
    number = ProtoField.uint32("rdma_tcp_2000.number", "Message Number"),
    order = ProtoField.uint16("rdma_tcp_2000.order", "Order"),
    clen = ProtoField.uint8("rdma_tcp_2000.clen", "CLEN"),
    offset = ProtoField.uint32("rdma_tcp_2000.offset", "Data Offset"),
    buffer = ProtoField.uint32("rdma_tcp_2000.buffer", "Buffer ID", base.HEX),
    buffer_offset = ProtoField.uint32("rdma_tcp_2000.buffer_offset", "Buffer Offset", base.HEX),
    rdma_length = ProtoField.uint32("rdma_tcp_2000.rdma_length", "RDMA Length"),
    upper = ProtoField.uint32("rdma_tcp_2000.upper", "Upper half of the offset", base.HEX),
    kind = ProtoField.uint8("rdma_tcp_2000.kind", "Kind", base.DEC, KINDS),
    ird = ProtoField.uint16("rdma_tcp_2000.ird", "IRD"),
    ord = ProtoField.uint16("rdma_tcp_2000.ord", "ORD"),
    control = ProtoField.bytes("rdma_tcp_2000.control", "Control data"),
    payload = ProtoField.bytes("rdma_tcp_2000.payload", "Payload"),
    crc = ProtoField.uint32("rdma_tcp_2000.crc", "CRC", base.HEX),
    crc_status = ProtoField.uint8("rdma_tcp_2000.crc.status", "CRC Status", base.DEC, STATUS),
}
local short = ProtoExpert.new("rdma_tcp_2000.short", "Segment Length too short",
                              expert.group.MALFORMED, expert.severity.ERROR)
local bad_crc = ProtoExpert.new("rdma_tcp_2000.crc.bad", "Bad CRC", expert.group.CHECKSUM,
                                expert.severity.ERROR)

proto.fields = f
proto.experts = { short, bad_crc }

-- Each has the same functions; which one is there depends on the version of Wireshark's Lua.
local bits = bit32 or bit

-- The remainder of each octet: the generator is 0xDB710641, here with its bits in reverse order,
-- because octets enter with the least significant bit first.
local remainders = {}

for octet = 0, 255 do
    local rest = octet

    for _ = 1, 8 do
        local low = bits.band(rest, 1)

        rest = bits.bxor(bits.rshift(rest, 1), low * 0x82608EDB)
    end
    remainders[octet] = rest
end

-- Of a string.
local function crc(octets)
    local rest = 0xFFFFFFFF

    for i = 1, #octets do
        local low = bits.band(bits.bxor(rest, octets:byte(i)), 0xFF)

        rest = bits.bxor(bits.rshift(rest, 8), remainders[low])
    end
    return bits.bnot(rest) % 0x100000000 -- "bit" has signed results
end

local function has_offset(kind)
    return kind == SEND or kind == READ_RESPONSE
end

local function header_length(kind)
    return has_offset(kind) and HDR_MIN or 32
end

local function show_control(tree, range, kind, setup)
    if setup and range:len() == 8 then
        tree:add(f.kind, range(1, 1))
        tree:add(f.ird, range(4, 2))
        tree:add(f.ord, range(6, 2))
    elseif not has_offset(kind) and range:len() == 4 then
        tree:add(f.upper, range)
    else
        tree:add(f.control, range)
    end
end

local function show_header(tree, tvb, kind)
    for _, field in ipairs({ f.setup, f.solicited, f.begin, f.last, f.type }) do
        tree:add(field, tvb(1, 1))
    end
    tree:add(f.length, tvb(2, 2))
    tree:add(f.conn_id, tvb(4, 8))
    tree:add(f.number, tvb(12, 4))
    tree:add(f.order, tvb(16, 2))
    tree:add(f.clen, tvb(19, 1))
    if has_offset(kind) then
        tree:add(f.offset, tvb(20, 4))
    else
        tree:add(f.buffer, tvb(20, 4))
        tree:add(f.buffer_offset, tvb(24, 4))
        tree:add(f.rdma_length, tvb(28, 4))
    end
end

-- The payload, which begins at 'from' and has 'length' octets, and the CRC.
local function show_rest(tree, tvb, from, length)
    local at = tvb:len() - 4
    local status

    if tvb:len() < tvb:reported_len() then
        tree:add(f.crc_status, UNVERIFIED):set_generated()
        return
    end
    if length > 0 then
        tree:add(f.payload, tvb(from, length))
    end
    status = crc(tvb:raw(0, at)) == tvb(at, 4):uint() and GOOD or BAD
    tree:add(f.crc, tvb(at, 4))
    tree:add(f.crc_status, tvb(at, 4), status):set_generated()
    if status == BAD then
        tree:add_proto_expert_info(bad_crc)
    end
end

local function describe(tvb, kind)
    local text = ("%s %u"):format(TYPES[kind], tvb(12, 4):uint())

    if tvb(1, 1):uint() >= SETUP then
        text = "Setup"
    elseif not has_offset(kind) then
        text = text .. (" buffer 0x%08x length %u"):format(tvb(20, 4):uint(), tvb(28, 4):uint())
    end
    return text
end

local function segment(tvb, pinfo, root)
    local length = tvb(2, 2):uint()
    local kind = tvb(1, 1):bitfield(6, 2)
    local tree = root:add(proto, tvb())
    local head = header_length(kind)
    local control = length >= HDR_MIN and tvb(19, 1):uint() * 4 or 0

    pinfo.cols.protocol = "RDMA/TCP"
    tree:add(f.version, tvb(0, 1))
    if length < head + control then
        tree:add_proto_expert_info(short)
        return tvb:len()
    end
    show_header(tree, tvb, kind)
    if control > 0 then
        show_control(tree, tvb(head, control), kind, tvb(1, 1):uint() >= SETUP)
    end
    show_rest(tree, tvb, head + control, length - head - control)
    tree:append_text(", " .. describe(tvb, kind))
    pinfo.cols.info:append((" [%s]"):format(describe(tvb, kind)))
    return tvb:len()
end

-- Length on the wire: padded to a multiple of four, and a CRC.
local function whole(tvb, _, offset)
    local length = tvb(offset + 2, 2):uint()

    return math.max(math.floor((length + 3) / 4) * 4 + 4, LENGTH_END)
end

function proto.dissector(tvb, pinfo, root)
    dissect_tcp_pdus(tvb, root, LENGTH_END, whole, segment)
    return tvb:len()
end

-- A setup message: version 1, one Send with eight octets of control data that begin with 1.
local function is_setup(tvb)
    return tvb:len() >= 32 and tvb(0, 1):uint() == VERSION and tvb(1, 1):uint() == 0x8c and
           tvb(19, 1):uint() == 2 and tvb(24, 1):uint() == 1 and KINDS[tvb(25, 1):uint()] ~= nil
end

proto:register_heuristic("tcp", function(tvb, pinfo, root)
    if not is_setup(tvb) then
        return false
    end
    pinfo.conversation = proto
    proto.dissector(tvb, pinfo, root)
    return true
end)

DissectorTable.get("tcp.port"):add_for_decode_as(proto)
