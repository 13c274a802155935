package initramfs

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"

	"rota/lab/arch"
)

func bytesOf(t *testing.T, im *Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := im.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSameContentsSameBytes(t *testing.T) {
	names := []string{"/etc/b", "/etc/a", "/bin/x", "/deep/er/file"}
	forward, backward := New(), New()
	for i := range names {
		for im, name := range map[*Image]string{forward: names[i], backward: names[len(names)-1-i]} {
			if err := im.Add(name, 0o644, []byte(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !bytes.Equal(bytesOf(t, forward), bytesOf(t, backward)) {
		t.Error("the order of adding is in the bytes")
	}
}

func TestArchive(t *testing.T) {
	im := New()
	if err := im.Add("/a/b", 0o755, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	im.Link("/bin/ls", "busybox")
	got := map[string]string{}
	var order []string
	r := cpio.NewReader(bytes.NewReader(bytesOf(t, im)))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != 0 || h.Uid != 0 {
			t.Errorf("%s: time %v, owner %d", h.Name, h.ModTime, h.Uid)
		}
		text, _ := io.ReadAll(r)
		got[h.Name] = h.Mode.String() + " " + string(text) + h.Linkname
		order = append(order, h.Name)
	}
	for name, want := range map[string]string{"a": "040755 ", "a/b": "0100755 hello", "bin/ls": "0120777 busybox", "lib64": "0120777 lib"} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	for i := 1; i < len(order); i++ {
		if order[i-1] >= order[i] {
			t.Errorf("%s before %s", order[i-1], order[i])
		}
	}
}

func TestAddRefuses(t *testing.T) {
	im := New()
	if err := im.Add("/x", 0o644, []byte("1")); err != nil {
		t.Fatal(err)
	}
	if err := im.Add("/x", 0o644, []byte("1")); err != nil {
		t.Errorf("the same file twice: %v", err)
	}
	if err := im.Add("/x", 0o644, []byte("2")); err == nil {
		t.Error("two files at one path")
	}
	if err := im.Add("/x/y", 0o644, nil); err == nil {
		t.Error("a file below a file")
	}
	if err := im.Add("/usr/lib/y", 0o644, nil); err == nil {
		t.Error("a file below a link")
	}
	if err := im.Add("/../../y", 0o644, nil); err != nil || !im.Has("/y") {
		t.Errorf("a path stays in the image: %v", err)
	}
}

func TestLibrariesOfARealProgram(t *testing.T) {
	path, err := exec.LookPath("ls")
	if err != nil {
		t.Skip("no ls here")
	}
	libraries, interpreter, err := Libraries(path)
	if err != nil {
		t.Fatal(err)
	}
	if interpreter == "" {
		t.Skip("ls is static here")
	}
	found := false
	for _, lib := range libraries {
		found = found || strings.HasPrefix(filepath.Base(lib), "libc.")
	}
	if !found {
		t.Errorf("no libc among %q", libraries)
	}
	im := New()
	if err := im.AddProgram("ls"); err != nil {
		t.Fatal(err)
	}
	if !im.Has("/bin/ls") || !im.Has("/lib/"+filepath.Base(interpreter)) {
		t.Error("program or dynamic linker is missing")
	}
}

func TestLibrariesRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("not ELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := New().AddProgram(path); err == nil || !strings.Contains(err.Error(), "as ELF") {
		t.Error(err)
	}
}

func TestProgramsOfAnotherArchitectureAreRefused(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []arch.Arch{arch.AMD64(), arch.ARM64()} {
		im := New()
		im.Arch = a
		err := im.AddProgram(self)
		if own := a.Name == arch.Own().Name; own != (err == nil) || !own && !strings.Contains(err.Error(), "built for "+arch.Own().Name+" and can't run in a guest of "+a.Name) {
			t.Errorf("%s: %v", a.Name, err)
		}
	}
}

func TestMissingProgramNamesItsPackage(t *testing.T) {
	t.Setenv("PATH", "")
	if _, err := FindProgram("no-such-program"); err == nil || !strings.Contains(err.Error(), "install the package") {
		t.Error(err)
	}
	if packageHint("cyclictest") != ": apt-get install rt-tests" {
		t.Error(packageHint("cyclictest"))
	}
}

func TestReadLinkerConf(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.conf": "include " + "d/*.conf\n/one # comment\n", "d/b.conf": "/two\n", "d/loop.conf": "include " + dir + "/a.conf\n"} {
		os.MkdirAll(filepath.Join(dir, "d"), 0o755)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := readLinkerConf(filepath.Join(dir, "a.conf"), 0)
	if len(got) < 2 || got[0] != "/two" || got[len(got)-1] != "/one" {
		t.Errorf("%q", got)
	}
}

// module is the smallest ELF file with a .modinfo section.
func module(info string) []byte {
	names := "\x00.modinfo\x00.shstrtab\x00"
	var b bytes.Buffer
	put := func(v any, size int) {
		n := reflect.ValueOf(v).Int()
		for range size {
			b.WriteByte(byte(n))
			n >>= 8
		}
	}
	b.WriteString("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9))
	put(int(elf.ET_REL), 2)
	put(int(elf.EM_X86_64), 2)
	put(1, 4)
	put(0, 8)
	put(0, 8)
	put(64+len(info)+len(names), 8) // section headers
	put(0, 4)
	for _, v := range []int{64, 0, 0, 64, 3, 2} {
		put(v, 2)
	}
	b.WriteString(info + names)
	section := func(name, kind, offset, size int) {
		put(name, 4)
		put(kind, 4)
		put(0, 8)
		put(0, 8)
		put(offset, 8)
		put(size, 8)
		b.WriteString(strings.Repeat("\x00", 24))
	}
	section(0, 0, 0, 0)
	section(1, 1, 64, len(info))
	section(10, 3, 64+len(info), len(names))
	return b.Bytes()
}

func TestAddModules(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, data []byte) {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compressed := func(data []byte) []byte {
		xz := exec.Command("xz", "--check=crc32")
		xz.Stdin = bytes.NewReader(data)
		packed, err := xz.Output()
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	put("kernel/net/top.ko.xz", compressed(module("license=GPL\x00depends=middle-one,built\x00")))
	put("kernel/net/middle-one.ko", module("depends=bottom\x00"))
	put("kernel/lib/bottom.ko.xz", compressed(module("depends=\x00")))
	put("kernel/lib/broken.ko", []byte(strings.Repeat("not ELF", 20)))
	put("kernel/lib/needy.ko", module("depends=nowhere\x00"))
	put("kernel/lib/odd.ko.gz", []byte("x"))
	put("modules.builtin", []byte("kernel/lib/built.ko\n"))
	for names, want := range map[string]string{"": "", "top devices=a,b": "", "middle-one": "", "built": "", "top|absent n=1|gone": "absent"} {
		if lacks, err := LacksModule(dir, strings.FieldsFunc(names, func(r rune) bool { return r == '|' })); err != nil || lacks != want {
			t.Errorf("of %q it lacks %q, %v", names, lacks, err)
		}
	}
	if lacks, err := LacksModule("", []string{"veth"}); err != nil || lacks != "veth" {
		t.Errorf("a kernel without modules lacks %q, %v", lacks, err)
	}
	im := New()
	order, err := im.AddModules(dir, []string{"top devices=a,b n=1", "bottom", "built x=1"})
	want := []string{"/lib/modules/bottom.ko", "/lib/modules/middle_one.ko", "/lib/modules/top.ko devices=a,b n=1"}
	if err != nil || !reflect.DeepEqual(order, want) {
		t.Errorf("%q, %v", order, err)
	}
	if !bytes.HasPrefix(im.entries["lib/modules/top.ko"].data, []byte("\x7fELF")) {
		t.Error("the module is not uncompressed")
	}
	for name, words := range map[string]string{"absent": "not in kernel", "broken": "bad magic", "needy": `"nowhere": not in kernel`, "odd": "unknown compression"} {
		if _, err := New().AddModules(dir, []string{name}); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New().AddModules("", []string{"veth"}); err == nil || !strings.Contains(err.Error(), "without modules") {
		t.Errorf("a kernel without modules: %v", err)
	}
}

func FuzzModuleDepends(f *testing.F) {
	f.Add(module("depends=a,b\x00"))
	f.Add([]byte("\x7fELF"))
	f.Fuzz(func(t *testing.T, data []byte) { moduleDepends(data) })
}
