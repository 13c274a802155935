// Package btftest makes the types of kernels, for tests of what looks for something in them.
package btftest

import (
	"testing"

	"github.com/cilium/ebpf/btf"
)

// Kernel is the BTF of a kernel that has these types.
func Kernel(t *testing.T, types ...btf.Type) *btf.Spec {
	t.Helper()
	builder, err := btf.NewBuilder(types, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := builder.Spec()
	if err != nil {
		t.Fatal(err)
	}
	return spec
}
