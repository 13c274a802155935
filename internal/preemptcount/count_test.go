package preemptcount

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"rota/internal/btftest"
)

// objects are the compiled programs that ask for the count, with those of their programs that
// must.
var objects = map[string][]string{
	"../where/where.bpf.o": {"where_fentry", "where_kprobe"},
	"../sched/rota.bpf.o":  nil,
}

// bound counts the loads of a variable with this number; every name must be gone.
func bound(t *testing.T, program *ebpf.ProgramSpec, id int64) (n int) {
	t.Helper()
	for _, ins := range program.Instructions {
		if ins.OpCode == asm.LoadImmOp(asm.DWord) && ins.Src == pseudoBTFID {
			if ins.Constant != id {
				t.Errorf("%s: variable %d, want %d", program.Name, ins.Constant, id)
			}
			n++
		}
		if _, left := variables[ins.Reference()]; left {
			t.Errorf("%s: %v is left", program.Name, ins)
		}
	}
	return n
}

// The variables of the kernel are in the objects, and are filled in.
func TestBind(t *testing.T) {
	for file, entries := range objects {
		t.Run(file, func(t *testing.T) {
			spec, err := ebpf.LoadCollectionSpec(file)
			if err != nil {
				t.Fatal(err)
			}
			count := Count{place: placeVariable, ids: map[string]btf.TypeID{"__preempt_count": 77}}
			if err := count.Bind(spec); err != nil {
				t.Fatal(err)
			}
			found := map[string]int{}
			all := 0
			for name, program := range spec.Programs {
				found[name] = bound(t, program, 77)
				all += found[name]
			}
			for _, entry := range entries {
				if found[entry] != 1 {
					t.Errorf("%s: %d loads of the variable, want 1", entry, found[entry])
				}
			}
			if all == 0 {
				t.Error("no program asks for the count")
			}
			var place uint32
			if err := spec.Variables["count_place"].Get(&place); err != nil || place != placeVariable {
				t.Errorf("place %d, error %v", place, err)
			}
		})
	}
}

func TestFind(t *testing.T) {
	u64 := &btf.Int{Name: "unsigned long long", Size: 8}
	count := btf.Member{Name: "preempt_count", Type: u64}
	info := func(members ...btf.Member) btf.Type {
		return &btf.Struct{Name: "thread_info", Size: 8, Members: members}
	}
	variable := func(name string) btf.Type {
		return &btf.Var{Name: name, Type: u64, Linkage: btf.GlobalVar}
	}
	tests := map[string]struct {
		kernel []btf.Type
		want   uint32
	}{
		"x86":             {[]btf.Type{info(), variable("__preempt_count")}, placeVariable},
		"x86, in between": {[]btf.Type{info(), variable("pcpu_hot")}, placeHot},
		"arm64":           {[]btf.Type{info(btf.Member{Type: &btf.Union{Size: 8, Members: []btf.Member{count}}})}, placeTask},
		"a plain member":  {[]btf.Type{info(count)}, placeTask},
		"nowhere":         {[]btf.Type{info(), variable("other")}, placeNone},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Find(btftest.Kernel(t, tt.kernel...))
			if got.place != tt.want || got.Known() != (tt.want != placeNone) {
				t.Errorf("place %d, known %v: want %d", got.place, got.Known(), tt.want)
			}
		})
	}
}

// A number that is none of a variable is refused, with which the rest does without.
func TestUnusable(t *testing.T) {
	count := Count{place: placeVariable, ids: map[string]btf.TypeID{"__preempt_count": 1}}
	if got := count.Usable(); got.Known() {
		t.Errorf("place %d, want none", got.place)
	}
}
