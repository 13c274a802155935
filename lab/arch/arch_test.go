package arch

import (
	"debug/elf"
	"testing"
)

func TestOf(t *testing.T) {
	for _, want := range []Arch{AMD64(), ARM64()} {
		byName, _ := Of(want.Name)
		byMark, _ := OfELF(want.ELF)
		byFlavour, _ := OfFlavour("cloud-" + want.Name)
		plain, _ := OfFlavour(want.Name)
		for how, got := range map[string]Arch{"name": byName, "mark": byMark, "flavour": byFlavour, "plain flavour": plain} {
			if got.Name != want.Name {
				t.Errorf("%s by %s: %q", want.Name, how, got.Name)
			}
		}
	}
	_, name := Of("s390x")
	_, mark := OfELF(elf.EM_S390)
	_, flavour := OfFlavour("")
	if name || mark || flavour {
		t.Error("an architecture without machines is known")
	}
}
