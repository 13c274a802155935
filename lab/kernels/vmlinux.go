package kernels

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/therootcompany/xz"
)

// maxVmlinux bounds an uncompressed kernel, in bytes.
const maxVmlinux = 256 << 20

// bootFile is the name in a row's directory of the kernel as a machine is given it:
// uncompressed, and without some pauses.
const bootFile = "vmlinux.boot"

// errCompression says that a kernel is left compressed, and the boot pays for it.
var errCompression = errors.New("another compression than zstd, xz or LZ4")

// compressions are told apart by how the compressed kernel begins.
var compressions = []struct {
	magic string
	open  func(io.Reader) (io.Reader, error)
}{
	{"\x28\xb5\x2f\xfd", func(r io.Reader) (io.Reader, error) {
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(maxVmlinux), zstd.WithDecoderMaxWindow(maxVmlinux), zstd.WithDecoderConcurrency(1))
		return z, err
	}},
	{"\xfd7zXZ\x00", func(r io.Reader) (io.Reader, error) { return xz.NewReader(r, maxDictionary) }},
	{"\x02\x21\x4c\x18", func(r io.Reader) (io.Reader, error) { return lz4.NewReader(r), nil }},
}

// maxDictionary bounds the memory for a kernel packed with xz, in bytes; Linux packs with 32 MiB.
const maxDictionary = 256 << 20

// uncompress writes the ELF kernel that a bzImage carries. A machine of counted
// instructions spends a third of its boot on uncompressing; the cache does it
// once.
func uncompress(image string, w io.Writer) error {
	data, err := os.ReadFile(image)
	if err != nil {
		return err
	}
	payload, err := payload(data)
	if err != nil {
		return err
	}
	for _, c := range compressions {
		if !bytes.HasPrefix(payload, []byte(c.magic)) {
			continue
		}
		r, err := c.open(bytes.NewReader(payload))
		if err != nil {
			return err
		}
		n, err := io.Copy(w, io.LimitReader(r, maxVmlinux+1))
		if n > maxVmlinux {
			return fmt.Errorf("uncompresses to more than %d MB", maxVmlinux>>20)
		}
		return err
	}
	return errCompression
}

// payload finds the compressed kernel by the fields of the boot header (see
// the kernel's Documentation/arch/x86/boot.rst).
func payload(image []byte) ([]byte, error) {
	if len(image) < 0x260 || string(image[0x202:0x206]) != "HdrS" {
		return nil, errors.New("not a bzImage of x86")
	}
	setup := int64(image[0x1f1])
	if setup == 0 {
		setup = 4
	}
	start := (setup+1)*512 + int64(binary.LittleEndian.Uint32(image[0x248:]))
	length := int64(binary.LittleEndian.Uint32(image[0x24c:]))
	// The last four bytes are the length after uncompressing.
	if length < 5 || start+length > int64(len(image)) {
		return nil, errors.New("its boot header points out of the file")
	}
	return image[start : start+length-4], nil
}

// addVmlinux puts the kernel that machines boot beside its image. A kernel that
// can't be entered without its compressed form is left as it is.
func addVmlinux(tree, image string) error {
	var kernel bytes.Buffer
	err := uncompress(image, &kernel)
	if errors.Is(err, errCompression) || err == nil && !hasPVH(kernel.Bytes()) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := removePauses(kernel.Bytes()); err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(tree, bootFile), kernel.Bytes(), 0o644, renameio.WithTempDir(tree), renameio.IgnoreUmask())
}

// hasPVH reports whether the ELF kernel has the note of the entry that QEMU
// uses: owner Xen, type 18.
func hasPVH(kernel []byte) bool {
	f, err := elf.NewFile(bytes.NewReader(kernel))
	if err != nil {
		return false
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		notes := make([]byte, min(p.Filesz, 1<<16))
		if _, err := p.ReadAt(notes, 0); err != nil {
			return false
		}
		if findNote(notes, "Xen", 18) {
			return true
		}
	}
	return false
}

func findNote(notes []byte, owner string, kind uint32) bool {
	for len(notes) >= 12 {
		name := uint64(binary.LittleEndian.Uint32(notes))
		desc := uint64(binary.LittleEndian.Uint32(notes[4:]))
		size := 12 + (name+3)&^3 + (desc+3)&^3
		if size > uint64(len(notes)) || 12+name > uint64(len(notes)) {
			return false
		}
		if binary.LittleEndian.Uint32(notes[8:]) == kind && string(bytes.TrimRight(notes[12:12+name], "\x00")) == owner {
			return true
		}
		notes = notes[size:]
	}
	return false
}
