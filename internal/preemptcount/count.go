// Package preemptcount finds where a kernel keeps the preempt count, which says whether a
// task or an interrupt is at work, for BPF objects that include bpf/context.h.
package preemptcount

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// Where it is: enum count_place of bpf/context.h.
const (
	placeNone uint32 = iota
	placeVariable
	placeHot
	placeTask
)

// pseudoBTFID marks the load of an address: the number is that of a variable in the
// kernel's types.
const pseudoBTFID asm.Register = unix.BPF_PSEUDO_BTF_ID

// variables are those of the kernel, for each CPU, that an object names.
var variables = map[string]uint32{"__preempt_count": placeVariable, "pcpu_hot": placeHot}

// Count is the place of the preempt count; the zero value: it is not known.
type Count struct {
	place uint32
	ids   map[string]btf.TypeID
}

// Find looks for the place in a kernel's types.
func Find(kernel *btf.Spec) Count {
	count := Count{ids: map[string]btf.TypeID{}}
	if info, err := kernel.AnyTypeByName("thread_info"); err == nil && hasMember(info, "preempt_count") {
		count.place = placeTask
	}
	for name, at := range variables {
		var variable *btf.Var
		if kernel.TypeByName(name, &variable) != nil {
			continue
		}
		if id, err := kernel.TypeID(variable); err == nil {
			count.place, count.ids[name] = at, id
		}
	}
	return count
}

// Known tells whether there is a place.
func (c Count) Known() bool { return c.place != placeNone }

// Usable is the same place, or none where the running kernel has the variable and gives
// nobody its address (CONFIG_KALLSYMS_ALL): it is asked with a program of two instructions.
func (c Count) Usable() Count {
	for _, id := range c.ids {
		load := asm.LoadImm(asm.R1, int64(id), asm.DWord)
		load.Src = pseudoBTFID
		program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Type:         ebpf.SocketFilter,
			License:      "GPL",
			Instructions: asm.Instructions{load, asm.Mov.Imm(asm.R0, 0), asm.Return()},
		})
		if err != nil {
			return Count{}
		}
		_ = program.Close()
	}
	return c
}

// Bind tells the programs of an object where to find the count. The library has no words for
// variables of each CPU, so their numbers in the kernel's types are put into the
// instructions here.
func (c Count) Bind(spec *ebpf.CollectionSpec) error {
	for _, program := range spec.Programs {
		for i := range program.Instructions {
			c.bind(&program.Instructions[i])
		}
	}
	variable, ok := spec.Variables["count_place"]
	if !ok {
		return errors.New(`no variable "count_place" in the object: build it again with: make build`)
	}
	return variable.Set(c.place)
}

// bind fixes one instruction, and keeps what it says of the source and of a function that begins
// there. What this kernel does not have becomes 0, in a branch that is not taken.
func (c Count) bind(ins *asm.Instruction) {
	name := ins.Reference()
	if _, ours := variables[name]; !ours {
		return
	}
	*ins = ins.WithReference("")
	ins.Constant, ins.Src = int64(c.ids[name]), asm.R0
	if c.ids[name] != 0 {
		ins.Src = pseudoBTFID
	}
}

func hasMember(t btf.Type, name string) bool {
	s, ok := t.(*btf.Struct)
	if !ok {
		return false
	}
	for _, m := range s.Members {
		if inner, ok := m.Type.(*btf.Union); m.Name == name || ok && m.Name == "" && unionHas(inner, name) {
			return true
		}
	}
	return false
}

func unionHas(u *btf.Union, name string) bool {
	for _, m := range u.Members {
		if m.Name == name {
			return true
		}
	}
	return false
}
