package binder

import (
	"encoding/binary"
	"fmt"
)

// Commands that we give (BC_*). The size of what follows is in bits 16..29.
const (
	bcTransaction      = 0x40406300
	bcReply            = 0x40406301
	bcFreeBuffer       = 0x40086303
	bcAcquire          = 0x40046305
	bcRelease          = 0x40046306
	bcIncrefsDone      = 0x40106308
	bcAcquireDone      = 0x40106309
	bcEnterLooper      = 0x0000630c
	bcRequestDeathNote = 0x400c630e
	bcDeadBinderDone   = 0x40086310
	bcTransactionSG    = 0x40486311
	bcReplySG          = 0x40486312
	sgStep             = bcTransactionSG - bcTransaction // from a command to its form with gathered buffers
	commandSizeShift   = 16
	commandSizeMask    = 0x3fff
	transactionBytes   = 64 // struct binder_transaction_data
)

// Answers of the driver (BR_*).
const (
	brError               = 0x80047200
	brTransactionSecCtx   = 0x80487202
	brTransaction         = 0x80407202
	brReply               = 0x80407203
	brDeadReply           = 0x00007205
	brTransactionComplete = 0x00007206
	brIncrefs             = 0x80107207
	brAcquire             = 0x80107208
	brRelease             = 0x80107209
	brDecrefs             = 0x8010720a
	brNoop                = 0x0000720c
	brSpawnLooper         = 0x0000720d
	brDeadBinder          = 0x8008720f
	brFailedReply         = 0x00007211
	brFrozenReply         = 0x00007212
	brOnewaySpamSuspect   = 0x00007213
)

// answer is one answer of the driver and what came with it.
type answer struct {
	code    uint32
	payload []byte // of the length that code says
}

// nextAnswer takes the first answer from what the driver wrote.
func nextAnswer(read []byte) (a answer, rest []byte, err error) {
	if len(read) < 4 {
		return a, nil, fmt.Errorf("driver: its answer breaks off after %d bytes of a code", len(read))
	}
	a.code, read = binary.LittleEndian.Uint32(read), read[4:]
	size := int(a.code >> commandSizeShift & commandSizeMask)
	if len(read) < size {
		return a, nil, fmt.Errorf("driver: answer %#x breaks off after %d of %d bytes", a.code, len(read), size)
	}
	a.payload = read[:size]
	return a, read[size:], nil
}

// transaction is struct binder_transaction_data.
type transaction struct {
	target, cookie uint64
	code, flags    uint32
	pid            int32
	euid           uint32
	dataSize       uint64
	offsetsSize    uint64
	data, offsets  uint64
}

func (t transaction) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, t.target)
	b = le.AppendUint64(b, t.cookie)
	b = le.AppendUint32(b, t.code)
	b = le.AppendUint32(b, t.flags)
	b = le.AppendUint32(b, uint32(t.pid))
	b = le.AppendUint32(b, t.euid)
	b = le.AppendUint64(b, t.dataSize)
	b = le.AppendUint64(b, t.offsetsSize)
	b = le.AppendUint64(b, t.data)
	return le.AppendUint64(b, t.offsets)
}

// readTransaction reads the struct; what comes after it is not looked at.
func readTransaction(b []byte) (transaction, error) {
	if len(b) < transactionBytes {
		return transaction{}, fmt.Errorf("driver: a transaction of %d bytes; it has %d", len(b), transactionBytes)
	}
	le := binary.LittleEndian
	return transaction{
		target: le.Uint64(b), cookie: le.Uint64(b[8:]),
		code: le.Uint32(b[16:]), flags: le.Uint32(b[20:]),
		pid: int32(le.Uint32(b[24:])), euid: le.Uint32(b[28:]),
		dataSize: le.Uint64(b[32:]), offsetsSize: le.Uint64(b[40:]),
		data: le.Uint64(b[48:]), offsets: le.Uint64(b[56:]),
	}, nil
}

// pair reads two numbers: the number of a node and its cookie.
func pair(payload []byte) (ptr, cookie uint64) {
	if len(payload) < 16 {
		return 0, 0
	}
	return binary.LittleEndian.Uint64(payload), binary.LittleEndian.Uint64(payload[8:])
}
