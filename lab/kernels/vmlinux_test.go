package kernels

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// bzImage is a boot header before a compressed kernel.
func bzImage(t *testing.T, packed []byte) string {
	t.Helper()
	data := make([]byte, 0x400, 0x400+len(packed)+4)
	data[0x1f1] = 1
	copy(data[0x202:], "HdrS")
	binary.LittleEndian.PutUint32(data[0x24c:], uint32(len(packed)+4))
	path := filepath.Join(t.TempDir(), "vmlinuz")
	if err := os.WriteFile(path, append(append(data, packed...), 0, 0, 0, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUncompress reads what the kernel's build writes; xz with its filter for machine code.
func TestUncompress(t *testing.T) {
	kernel := bytes.Repeat([]byte("\xe8\x00\x01\x00\x00 call, "), 1000)
	x := exec.Command("xz", "--check=crc32", "--x86", "--lzma2=dict=32MiB")
	x.Stdin = bytes.NewReader(kernel)
	xzPacked, err := x.Output()
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var lz4Packed bytes.Buffer
	l := lz4.NewWriter(&lz4Packed)
	if err := errors.Join(l.Apply(lz4.LegacyOption(true)), func() error { _, err := l.Write(kernel); return err }(), l.Close()); err != nil {
		t.Fatal(err)
	}
	for name, packed := range map[string][]byte{"xz": xzPacked, "zstd": z.EncodeAll(kernel, nil), "LZ4": lz4Packed.Bytes()} {
		var got bytes.Buffer
		if err := uncompress(bzImage(t, packed), &got); err != nil || !bytes.Equal(got.Bytes(), kernel) {
			t.Errorf("%s: error %v, %d bytes of %d", name, err, got.Len(), len(kernel))
		}
		if err := uncompress(bzImage(t, packed[:len(packed)/2]), io.Discard); err == nil {
			t.Errorf("%s: half of it is a kernel", name)
		}
	}
	if err := uncompress(bzImage(t, []byte("BZh9")), io.Discard); !errors.Is(err, errCompression) {
		t.Error(err)
	}
}

// elfOf is an ELF file whose one section besides the names is called name.
func elfOf(name string, code []byte) []byte {
	names := "\x00" + name + "\x00.shstrtab\x00"
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1,
		Shoff: uint64(64 + len(code) + len(names)), Ehsize: 64, Shentsize: 64, Shnum: 3, Shstrndx: 2,
	}
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: 64, Size: uint64(len(code))},
		{Name: uint32(2 + len(name)), Type: uint32(elf.SHT_STRTAB), Off: uint64(64 + len(code)), Size: uint64(len(names))},
	}
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, header)
	b.Write(code)
	b.WriteString(names)
	binary.Write(&b, binary.LittleEndian, sections)
	return b.Bytes()
}

// withPVH is elfOf with the note of the entry that QEMU uses.
func withPVH(code []byte) []byte {
	kernel := elfOf(".init.text", code)
	note := []byte("\x04\x00\x00\x00\x08\x00\x00\x00\x12\x00\x00\x00Xen\x00\x00\x00\x00\x01\x00\x00\x00\x00")
	header := elf.Prog64{Type: uint32(elf.PT_NOTE), Off: uint64(len(kernel) + 56), Filesz: uint64(len(note)), Memsz: uint64(len(note))}
	var b bytes.Buffer
	b.Write(kernel)
	binary.Write(&b, binary.LittleEndian, header)
	b.Write(note)
	out := b.Bytes()
	binary.LittleEndian.PutUint64(out[32:], uint64(len(kernel))) // where the program headers are
	binary.LittleEndian.PutUint16(out[54:], 56)
	binary.LittleEndian.PutUint16(out[56:], 1)
	return out
}

// TestBootFile: what a machine is given is made when a kernel is first asked for, also one
// that lies in the cache already.
func TestBootFile(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	wait, still := []byte{0x0f, 0x31, 0xf3, 0x90}, []byte{0x0f, 0x31, 0x66, 0x90}
	for name, c := range map[string]struct{ kernel, want []byte }{
		"with the entry":    {withPVH(wait), withPVH(still)},
		"without the entry": {elfOf(".init.text", wait), nil},
	} {
		image := bzImage(t, z.EncodeAll(c.kernel, nil))
		k, err := Store{Dir: filepath.Dir(image)}.uncompressed(Kernel{Image: image, Boot: image, tree: filepath.Dir(image)})
		if err != nil {
			t.Fatal(err)
		}
		if c.want == nil {
			if k.Boot != image {
				t.Errorf("%s: boots %s", name, k.Boot)
			}
			continue
		}
		got, err := os.ReadFile(k.Boot)
		if err != nil || filepath.Base(k.Boot) != bootFile || !bytes.Equal(got, c.want) {
			t.Errorf("%s: boots %s, error %v, as wanted %v", name, k.Boot, err, bytes.Equal(got, c.want))
		}
	}
}

func TestRemovePauses(t *testing.T) {
	far := bytes.Repeat([]byte{0x90}, 2*nearPause)
	wait := []byte{0x0f, 0x31, 0x48, 0x29, 0xc8, 0xf3, 0x90, 0xeb, 0xf7} // rdtsc; sub; pause; jmp
	spin := []byte{0x8b, 0x07, 0xf3, 0x90, 0xeb, 0xfa}                   // mov; pause; jmp
	code := bytes.Join([][]byte{wait, far, spin, far, wait}, nil)
	still := bytes.Replace(wait, pause, nop, 1)
	want := bytes.Join([][]byte{still, far, spin, far, still}, nil)
	for name, want := range map[string][]byte{".init.text": want, ".text": code} {
		kernel := elfOf(name, bytes.Clone(code))
		if err := removePauses(kernel); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(kernel, elfOf(name, want)) {
			t.Errorf("section %s: %x", name, kernel[64:64+len(code)])
		}
	}
	short := elfOf(".init.text", code)
	binary.LittleEndian.PutUint64(short[len(short)-128+32:], 1<<40)
	if err := removePauses(short); err == nil {
		t.Error("a section of 1 TiB was read")
	}
	if err := removePauses([]byte("text")); err == nil {
		t.Error("not ELF")
	}
}
