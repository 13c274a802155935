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

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// maxVmlinux bounds an uncompressed kernel, in bytes.
const maxVmlinux = 512 << 20

// bootFile is the uncompressed kernel's name in a row's directory.
const bootFile = "vmlinux"

// errCompression says that a kernel is left compressed: a quick method such as
// LZ4, which costs a boot little, or xz with a filter for machine code, which the
// reader does not know and the boot pays for.
var errCompression = errors.New("another compression than zstd or plain xz")

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
	var r io.Reader
	switch {
	case bytes.HasPrefix(payload, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(bytes.NewReader(payload), zstd.WithDecoderMaxMemory(maxVmlinux), zstd.WithDecoderMaxWindow(maxVmlinux))
		if err != nil {
			return err
		}
		defer z.Close()
		r = z
	case bytes.HasPrefix(payload, []byte{0xfd, '7', 'z', 'X', 'Z', 0}):
		if r, err = plainXZ(payload); err != nil {
			return err
		}
	default:
		return errCompression
	}
	n, err := io.Copy(w, io.LimitReader(r, maxVmlinux+1))
	if n > maxVmlinux {
		return fmt.Errorf("uncompresses to more than %d MB", maxVmlinux>>20)
	}
	return err
}

// plainXZ is a reader of xz without filters. Whether there are any is known when
// the first byte has been read.
func plainXZ(payload []byte) (io.Reader, error) {
	r, err := xz.NewReader(bytes.NewReader(payload))
	if err != nil {
		return nil, errCompression
	}
	var first [1]byte
	if _, err := io.ReadFull(r, first[:]); err != nil {
		return nil, errCompression
	}
	return io.MultiReader(bytes.NewReader(first[:]), r), nil
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

// addVmlinux puts the uncompressed kernel beside its image. A kernel that
// can't be entered without its compressed form is left as it is.
func addVmlinux(tree, image string) error {
	path := filepath.Join(tree, bootFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	err = errors.Join(uncompress(image, f), f.Close())
	if errors.Is(err, errCompression) || err == nil && !hasPVH(path) {
		return os.Remove(path)
	}
	return err
}

// hasPVH reports whether the ELF kernel has the note of the entry that QEMU
// uses: owner Xen, type 18.
func hasPVH(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
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
