package sched

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"rota/internal/btftest"
)

func TestKfuncs(t *testing.T) {
	found := kfuncs(object(t))
	if len(found) == 0 {
		t.Fatal("the object calls no kernel function")
	}
	if _, ok := found[""]; ok {
		t.Error("a call has no name")
	}
	for name := range optionalKfuncs {
		if !found[name] {
			t.Errorf("%s is optional, and the object does not call it", name)
		}
	}
	for _, name := range []string{"scx_bpf_create_dsq", "scx_bpf_kick_cpu", "scx_bpf_error_bstr"} {
		if optional, ok := found[name]; !ok || optional {
			t.Errorf("%s: called %v, optional %v: want a call that must be possible", name, ok, optional)
		}
	}
}

// What the loader may do without is weak in the object, or the library would
// refuse to load it.
func TestOptionalKfuncsAreWeak(t *testing.T) {
	source, clock := header(t, "kernel.h"), header(t, "clock.bpf.h")
	for name := range optionalKfuncs {
		_, rest, ok := strings.Cut(strings.ReplaceAll(source, "*", " "), " "+name+"(")
		prototype, _, _ := strings.Cut(rest, ";")
		if !ok || !strings.Contains(prototype, "__weak") {
			t.Errorf("kernel.h: %s is optional and not weak", name)
		}
		guard := name
		if newer := successors[name]; newer != "" {
			guard = newer
		}
		if !strings.Contains(source+clock, "bpf_ksym_exists("+guard+")") {
			t.Errorf("kernel.h, clock.bpf.h: %s is optional and nothing asks whether %s exists", name, guard)
		}
	}
}

// successors are the later names of functions that were renamed. The object
// asks for those, and calls the earlier ones where they do not exist.
var successors = map[string]string{
	"scx_bpf_dispatch":                    "scx_bpf_dsq_insert",
	"scx_bpf_dispatch_vtime":              "scx_bpf_dsq_insert_vtime",
	"scx_bpf_consume":                     "scx_bpf_dsq_move_to_local",
	"scx_bpf_dispatch_from_dsq":           "scx_bpf_dsq_move",
	"scx_bpf_dispatch_vtime_from_dsq":     "scx_bpf_dsq_move_vtime",
	"scx_bpf_dispatch_from_dsq_set_vtime": "scx_bpf_dsq_move_set_vtime",
	"scx_bpf_reenqueue_local":             "scx_bpf_reenqueue_local___v2",
}

// function is a kernel function with these parameters.
func function(name string, params ...btf.Type) *btf.Func {
	proto := &btf.FuncProto{Return: &btf.Void{}}
	for _, param := range params {
		proto.Params = append(proto.Params, btf.FuncParam{Name: "p", Type: param})
	}
	return &btf.Func{Name: name, Type: proto, Linkage: btf.StaticFunc}
}

func TestMalformed(t *testing.T) {
	u64 := &btf.Int{Name: "unsigned long long", Size: 8}
	aux := &btf.Struct{Name: "bpf_prog_aux", Size: 8}
	task := &btf.Pointer{Target: &btf.Struct{Name: "task_struct", Size: 8}}
	tests := map[string]struct {
		fn   *btf.Func
		want bool
	}{
		"no parameters":      {function("f"), false},
		"public ones":        {function("f", task, u64), false},
		"void pointer":       {function("f", &btf.Pointer{Target: &btf.Void{}}), false},
		"hidden one last":    {function("f", task, u64, &btf.Pointer{Target: aux}), true},
		"hidden one alone":   {function("f", &btf.Pointer{Target: aux}), true},
		"hidden, const":      {function("f", &btf.Pointer{Target: &btf.Const{Type: aux}}), true},
		"hidden, typedef":    {function("f", &btf.Typedef{Name: "aux_t", Type: &btf.Pointer{Target: aux}}), true},
		"not by pointer":     {function("f", aux), false},
		"pointer to pointer": {function("f", &btf.Pointer{Target: &btf.Pointer{Target: aux}}), false},
		"a name alike":       {function("f", &btf.Pointer{Target: &btf.Struct{Name: "bpf_prog_auxiliary"}}), false},
		"no prototype":       {&btf.Func{Name: "f", Type: u64}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := malformed(test.fn); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

func u64() btf.Type { return &btf.Int{Name: "unsigned long long", Size: 8} }

func TestKernelFunc(t *testing.T) {
	tests := map[string]struct {
		kernel []btf.Type
		params int // of the one to find; -1: none
	}{
		"alone":                  {[]btf.Type{function("f", u64())}, 1},
		"absent":                 {[]btf.Type{function("g")}, -1},
		"a prefix":               {[]btf.Type{function("f_more"), function("ff")}, -1},
		"flavours after it":      {[]btf.Type{function("f", u64()), function("f___v2"), function("f___v2_impl")}, 1},
		"flavours before it":     {[]btf.Type{function("f___v2_impl"), function("f___v2"), function("f", u64())}, 1},
		"flavours around it":     {[]btf.Type{function("f___v2"), function("f", u64()), function("f___v3")}, 1},
		"only flavours":          {[]btf.Type{function("f___v2"), function("f___v2_impl"), function("f___v3")}, -1},
		"one flavour":            {[]btf.Type{function("f___v2")}, -1},
		"another kind of type":   {[]btf.Type{&btf.Struct{Name: "f", Size: 8}}, -1},
		"a struct of that name":  {[]btf.Type{&btf.Struct{Name: "f", Size: 8}, function("f", u64())}, 1},
		"a struct that is later": {[]btf.Type{function("f", u64()), &btf.Struct{Name: "f", Size: 8}}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fn, err := kernelFunc(btftest.Kernel(t, test.kernel...), "f")
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case fn == nil && test.params >= 0:
				t.Error("not found")
			case fn != nil && test.params < 0:
				t.Errorf("found %v, want none", fn)
			case fn != nil && (fn.Name != "f" || len(fn.Type.(*btf.FuncProto).Params) != test.params):
				t.Errorf("found %v, want the plain one", fn)
			}
		})
	}
}

// call is what the compiler makes of a call of a kernel function.
func call(name string) asm.Instruction {
	ins := asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall, Constant: -1}
	return ins.WithReference(name)
}

func TestResolveKfuncs(t *testing.T) {
	kernel := btftest.Kernel(t, function("f___v2_impl"), function("f___v2"), function("f", u64()),
		function("g", u64()))
	f, err := kernelFunc(kernel, "f")
	if err != nil || f == nil {
		t.Fatalf("%v, %v", f, err)
	}
	id, err := kernel.TypeID(f)
	if err != nil {
		t.Fatal(err)
	}
	spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"p": {Instructions: asm.Instructions{
		call("f").WithSymbol("p"), call("g"), call("absent"), asm.Mov.Imm(asm.R0, 0), asm.Return(),
	}}}}
	if err := resolveKfuncs(spec, kernel); err != nil {
		t.Fatal(err)
	}
	code := spec.Programs["p"].Instructions
	if code[0].Constant != int64(id) || code[0].Reference() != "" || code[0].Src != asm.PseudoKfuncCall {
		t.Errorf("the call of f is %v with reference %q, want id %d and none", code[0], code[0].Reference(), id)
	}
	if code[0].Symbol() != "p" {
		t.Errorf("the program is called %q, want %q", code[0].Symbol(), "p")
	}
	if code[1].Constant <= 0 || code[1].Constant == code[0].Constant {
		t.Errorf("the call of g has become %v: want its own id", code[1])
	}
	if code[2].Constant != -1 || code[2].Reference() != "absent" {
		t.Errorf("the call of absent has become %v: want it left to the library", code[2])
	}
}

// The object itself, on a kernel that has everything several times.
func TestResolveObject(t *testing.T) {
	spec := object(t)
	var types []btf.Type
	names := slices.Sorted(maps.Keys(kfuncs(spec)))
	for _, name := range names {
		types = append(types, function(name, u64()), function(name+"___v2"), function(name+"___v2_impl"))
	}
	kernel := btftest.Kernel(t, types...)
	want := make(map[btf.TypeID]bool)
	for _, name := range names {
		fn, err := kernelFunc(kernel, name)
		if err != nil || fn == nil {
			t.Fatalf("%s: %v, %v", name, fn, err)
		}
		id, _ := kernel.TypeID(fn)
		want[id] = true
	}
	if err := resolveKfuncs(spec, kernel); err != nil {
		t.Fatal(err)
	}
	if left := kfuncs(spec); len(left) != 1 { // the calls that are bound have no name any more
		t.Errorf("not bound: %v", left)
	}
	for _, prog := range spec.Programs {
		for _, ins := range prog.Instructions {
			if ins.OpCode.JumpOp() == asm.Call && ins.Src == asm.PseudoKfuncCall && !want[btf.TypeID(ins.Constant)] {
				t.Errorf("%s calls id %d, which is none of ours", prog.Name, ins.Constant)
			}
		}
	}
}
