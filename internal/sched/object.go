package sched

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"rota/internal/preemptcount"
)

//go:embed rota.bpf.o
var objectELF []byte

// readObject parses the compiled scheduler that is part of this program.
func readObject() (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(objectELF))
	if err != nil {
		return nil, fmt.Errorf("scheduler object: %w; build it again with: make build", err)
	}
	return spec, nil
}

// image is the compiled scheduler, with the functions that it calls found in the
// running kernel. It takes megabytes, and is let go when everything is loaded.
type image struct {
	spec   *ebpf.CollectionSpec // to be copied
	cache  *btf.Cache
	kernel *btf.Spec
}

func openImage() (*image, error) {
	cache := btf.NewCache()
	kernel, err := cache.Kernel()
	if err != nil {
		return nil, fmt.Errorf("the kernel's types: %w", err)
	}
	return openImageFor(cache, kernel)
}

func openImageFor(cache *btf.Cache, kernel *btf.Spec) (*image, error) {
	spec, err := readObject()
	if err != nil {
		return nil, err
	}
	if err := resolveKfuncs(spec, kernel); err != nil {
		return nil, err
	}
	if err := preemptcount.Find(kernel).Usable().Bind(spec); err != nil {
		return nil, err
	}
	return &image{spec, cache, kernel}, nil
}

// kfuncs are the kernel functions that the object calls, by name, with
// whether the object can do without each.
func kfuncs(spec *ebpf.CollectionSpec) map[string]bool {
	found := make(map[string]bool)
	for _, prog := range spec.Programs {
		for _, ins := range prog.Instructions {
			if ins.OpCode.JumpOp() == asm.Call && ins.Src == asm.PseudoKfuncCall {
				found[ins.Reference()] = optionalKfuncs[ins.Reference()]
			}
		}
	}
	return found
}

// optionalKfuncs are those that only some kernels have; kernel.h tells how
// the object does without.
var optionalKfuncs = map[string]bool{
	"scx_bpf_dispatch": true, "scx_bpf_dispatch_vtime": true,
	"scx_bpf_consume": true, "scx_bpf_dispatch_from_dsq": true,
	"scx_bpf_dispatch_vtime_from_dsq": true, "scx_bpf_dispatch_from_dsq_set_vtime": true,
	"scx_bpf_dsq_insert": true, "scx_bpf_dsq_insert_vtime": true,
	"scx_bpf_dsq_move_to_local": true, "scx_bpf_dsq_move": true,
	"scx_bpf_dsq_move_vtime": true, "scx_bpf_dsq_move_set_vtime": true,
	"scx_bpf_now": true, "scx_bpf_locked_rq": true, "scx_bpf_task_set_slice": true,
	"scx_bpf_task_cgroup": true, "scx_bpf_reenqueue_local": true, "scx_bpf_reenqueue_local___v2": true,
}

// kernelFunc finds the function of exactly this name in the kernel's BTF.
// nil means that the kernel does not have it.
//
// btf.Spec.TypeByName cannot be used: since 7.1 kernels also carry flavours
// of a kfunc (name___v2, name___v2_impl), for which it reports several
// matches.
func kernelFunc(kernel *btf.Spec, name string) (*btf.Func, error) {
	types, err := kernel.AnyTypesByName(name)
	if errors.Is(err, btf.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("kernel BTF: look up %s: %w", name, err)
	}
	for _, typ := range types {
		if fn, ok := typ.(*btf.Func); ok && fn.Name == name {
			return fn, nil
		}
	}
	return nil, nil
}

// malformed tells whether the public prototype of a kfunc still has the
// argument that only the kernel fills in. Kernels whose BTF was written by
// too old a pahole have such functions; no loader can call them, because the
// verifier itself looks for the missing half.
func malformed(fn *btf.Func) bool {
	proto, ok := fn.Type.(*btf.FuncProto)
	if !ok {
		return true
	}
	for _, param := range proto.Params {
		ptr, ok := btf.As[*btf.Pointer](param.Type)
		if !ok {
			continue
		}
		if st, ok := btf.As[*btf.Struct](ptr.Target); ok && st.Name == "bpf_prog_aux" {
			return true
		}
	}
	return false
}

// resolveKfuncs writes the kernel's ids of kfuncs into the calls: where there
// are flavours the library cannot do that by itself (see kernelFunc).
func resolveKfuncs(spec *ebpf.CollectionSpec, kernel *btf.Spec) error {
	ids := make(map[string]btf.TypeID)
	for name := range kfuncs(spec) {
		fn, err := kernelFunc(kernel, name)
		if err != nil {
			return err
		}
		if fn == nil {
			continue // the library says so, if the object can't do without
		}
		if ids[name], err = kernel.TypeID(fn); err != nil {
			return fmt.Errorf("kernel function %s: %w", name, err)
		}
	}
	for _, prog := range spec.Programs {
		for i := range prog.Instructions {
			bindKfunc(&prog.Instructions[i], ids)
		}
	}
	return nil
}

// bindKfunc fixes one instruction: the id becomes its constant, and the mark
// that makes the library look again is dropped with the metadata. What it says of a
// function that begins with the call, and of the source, is kept.
func bindKfunc(ins *asm.Instruction, ids map[string]btf.TypeID) {
	id, ok := ids[ins.Reference()]
	if !ok || ins.Reference() == "" {
		return
	}
	symbol, function, line := ins.Symbol(), btf.FuncMetadata(ins), ins.Source()
	ins.Metadata = asm.Metadata{}
	if line != nil {
		*ins = ins.WithSource(line)
	}
	if symbol != "" {
		*ins = ins.WithSymbol(symbol)
	}
	if function != nil {
		*ins = btf.WithFuncMetadata(*ins, function)
	}
	ins.Constant = int64(id)
	ins.Offset = 0
}

// readLine reads one line of /proc or /sys, without its newline.
func readLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}
