package sched

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"rota/internal/btftest"
)

// opsTable is an object whose ops table has these members, 8 bytes each and
// filled with ones.
func opsTable(members ...string) *ebpf.CollectionSpec {
	table := &btf.Struct{Name: "sched_ext_ops", Size: uint32(8 * len(members))}
	for i, name := range members {
		table.Members = append(table.Members, btf.Member{Name: name, Type: u64(), Offset: btf.Bits(64 * i)})
	}
	return &ebpf.CollectionSpec{ByteOrder: binary.LittleEndian, Maps: map[string]*ebpf.MapSpec{"rota_ops": {
		Value: table, Contents: []ebpf.MapKV{{Key: uint32(0), Value: bytes.Repeat([]byte{0xff}, 8*len(members))}},
	}}}
}

func opsBytes(spec *ebpf.CollectionSpec) []byte {
	return spec.Maps["rota_ops"].Contents[0].Value.([]byte)
}

func TestSetOpsMember(t *testing.T) {
	ones := bytes.Repeat([]byte{0xff}, 8)
	value := []byte{8, 7, 6, 5, 4, 3, 2, 1}
	tests := map[string]struct {
		spec *ebpf.CollectionSpec
		want []byte // nil: an error
	}{
		"first":        {opsTable("flags", "b", "c"), bytes.Join([][]byte{value, ones, ones}, nil)},
		"in between":   {opsTable("a", "flags", "c"), bytes.Join([][]byte{ones, value, ones}, nil)},
		"last":         {opsTable("a", "b", "flags"), bytes.Join([][]byte{ones, ones, value}, nil)},
		"no such name": {opsTable("a", "flagship"), nil},
		"no table":     {&ebpf.CollectionSpec{}, nil},
		"no contents":  {&ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{"rota_ops": {}}}, nil},
		"odd contents": {&ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{"rota_ops": {Contents: []ebpf.MapKV{{Value: 1}}}}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := setOpsMember(test.spec, "flags", 0x0102030405060708)
			if (err == nil) != (test.want != nil) {
				t.Fatalf("error %v", err)
			}
			if err == nil && !bytes.Equal(opsBytes(test.spec), test.want) {
				t.Errorf("%x, want %x", opsBytes(test.spec), test.want)
			}
		})
	}
}

// flagsOf are the flags that a kernel knows.
func flagsOf(values map[string]uint64) btf.Type {
	enum := &btf.Enum{Name: "scx_ops_flags", Size: 8}
	for name, value := range values {
		enum.Values = append(enum.Values, btf.EnumValue{Name: name, Value: value})
	}
	return enum
}

func TestSetOpsFlags(t *testing.T) {
	tests := map[string]struct {
		kernel btf.Type
		want   uint64
	}{
		"all known": {flagsOf(map[string]uint64{
			"SCX_OPS_KEEP_BUILTIN_IDLE": 1, "SCX_OPS_ENQ_LAST": 2, "SCX_OPS_ENQ_EXITING": 4,
			"SCX_OPS_SWITCH_PARTIAL": 8, "SCX_OPS_ENQ_MIGRATION_DISABLED": 16,
			"SCX_OPS_ALLOW_QUEUED_WAKEUP": 32, "SCX_OPS_ALL_FLAGS": 63,
		}), 2 | 4 | 16 | 32},
		"an old kernel": {flagsOf(map[string]uint64{
			"SCX_OPS_KEEP_BUILTIN_IDLE": 1, "SCX_OPS_ENQ_EXITING": 4, "SCX_OPS_SWITCH_PARTIAL": 8,
		}), 4},
		"other numbers": {flagsOf(map[string]uint64{
			"SCX_OPS_ENQ_EXITING": 1 << 40, "SCX_OPS_ALLOW_QUEUED_WAKEUP": 1 << 63,
		}), 1<<40 | 1<<63},
		"none of ours": {flagsOf(map[string]uint64{"SCX_OPS_SWITCH_PARTIAL": 8}), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kernel, spec := btftest.Kernel(t, test.kernel), object(t)
			before := bytes.Clone(opsBytes(spec))
			if err := setOpsFlags(spec, kernel); err != nil {
				t.Fatal(err)
			}
			offset := opsOffset(t, spec, "flags")
			if got := spec.ByteOrder.Uint64(opsBytes(spec)[offset:]); got != test.want {
				t.Errorf("flags %#x, want %#x", got, test.want)
			}
			copy(before[offset:offset+8], opsBytes(spec)[offset:])
			if !bytes.Equal(before, opsBytes(spec)) {
				t.Error("something else has changed as well")
			}
		})
	}
	if err := setOpsFlags(object(t), btftest.Kernel(t, function("f"))); err == nil || !strings.Contains(err.Error(), "scx_ops_flags") {
		t.Errorf("a kernel without sched_ext: %v", err)
	}
}

// opsOffset is where the object's own BTF has a member of the ops table.
func opsOffset(t *testing.T, spec *ebpf.CollectionSpec, name string) uint32 {
	t.Helper()
	var ops *btf.Struct
	if err := spec.Types.TypeByName("sched_ext_ops", &ops); err != nil {
		t.Fatal(err)
	}
	for _, member := range ops.Members {
		if member.Name != name {
			continue
		}
		if size, err := btf.Sizeof(member.Type); err != nil || size != 8 {
			t.Fatalf("ops.%s has %d bytes, %v: want 8", name, size, err)
		}
		return member.Offset.Bytes()
	}
	t.Fatalf("no ops.%s", name)
	return 0
}

// TestOccupyBelow opens a descriptor while lower ones were free: it gets a higher
// one all the same, and afterwards the low ones are free again.
func TestOccupyBelow(t *testing.T) {
	null := func() int {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	const hook = 300
	if low := null(); low > hook {
		t.Fatalf("the lowest free descriptor is %d", low)
	}
	free := occupyBelow(hook + 1)
	if during := null(); during <= hook {
		t.Errorf("descriptor %d while those up to %d are taken", during, hook)
	}
	free()
	if after := null(); after >= hook {
		t.Errorf("descriptor %d afterwards: those below %d are not free", after, hook)
	}
}
