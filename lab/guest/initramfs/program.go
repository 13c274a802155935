package initramfs

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"

	"rota/lab/arch"
)

// AddProgram copies a host program to /bin/NAME together with its dynamic
// linker and every library it names. host is a path or a name in PATH. What a
// program opens by itself at run time (plug-ins, data) is not seen.
func (im *Image) AddProgram(host string) error {
	path, err := FindProgram(host)
	if err != nil {
		return err
	}
	return im.addProgramAs("/bin/"+filepath.Base(path), path)
}

// AddInit copies a host program to /init, which the kernel starts as PID 1.
func (im *Image) AddInit(host string) error { return im.addProgramAs("/init", host) }

// FindProgram finds a program of the host, in the places of the superuser too.
func FindProgram(name string) (string, error) {
	if strings.Contains(name, "/") {
		if _, err := os.Stat(name); err != nil {
			return "", fmt.Errorf("program %q: %w", name, err)
		}
		return name, nil
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("program %q: not on this machine; install the package that has it%s", name, packageHint(name))
}

// packageHint names the Debian package of the tools that scenarios use.
func packageHint(name string) string {
	packages := map[string]string{
		"cyclictest": "rt-tests", "hackbench": "rt-tests", "stress-ng": "stress-ng",
		"perf": "linux-perf", "ping": "iputils-ping", "ip": "iproute2", "busybox": "busybox-static",
	}
	if name := packages[name]; name != "" {
		return ": apt-get install " + name
	}
	return ""
}

func (im *Image) addProgramAs(guest, host string) error {
	data, err := os.ReadFile(host)
	if err != nil {
		return fmt.Errorf("program %q: %w", host, err)
	}
	if err := im.Add(guest, 0o755, data); err != nil {
		return err
	}
	if bytes.HasPrefix(data, []byte("#!")) {
		return nil // a script: its interpreter must be in the image anyway
	}
	if err := im.fits(data); err != nil {
		return fmt.Errorf("program %q: %w", host, err)
	}
	real, err := filepath.EvalSymlinks(host)
	if err != nil {
		return err
	}
	libraries, interpreter, err := Libraries(real)
	if err != nil {
		return fmt.Errorf("program %q: %w", host, err)
	}
	for _, lib := range libraries {
		if err := im.AddFile("/lib/"+filepath.Base(lib), lib); err != nil {
			return fmt.Errorf("program %q: %w", host, err)
		}
	}
	if interpreter == "" {
		return nil
	}
	// /lib64 and /usr/lib are links to /lib in the guest.
	return im.AddFile("/lib/"+filepath.Base(interpreter), interpreter)
}

// fits refuses a program of another architecture than the image's.
func (im *Image) fits(program []byte) error {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil || im.Arch.Name == "" || f.Machine == im.Arch.ELF {
		return nil // what is no program is refused in other words
	}
	built := f.Machine.String()
	if a, known := arch.OfELF(f.Machine); known {
		built = a.Name
	}
	return fmt.Errorf("built for %s and can't run in a guest of %s; give one that is built for %s", built, im.Arch.Name, im.Arch.Name)
}

// Libraries returns the files of all libraries that the ELF program at path
// needs, directly or through others, sorted, and its dynamic linker ("" for a
// static program).
func Libraries(path string) (libraries []string, interpreter string, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, "", fmt.Errorf("read %s as ELF: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b := make([]byte, min(p.Filesz, 4096))
			if _, err := p.ReadAt(b, 0); err != nil {
				return nil, "", fmt.Errorf("read %s as ELF: %w", path, err)
			}
			interpreter = strings.TrimRight(string(b), "\x00")
		}
	}
	if interpreter == "" {
		return nil, "", nil
	}
	found := map[string]string{} // soname to file
	if err := closure(path, f.Machine, linkerDirs(), found); err != nil {
		return nil, "", err
	}
	for _, file := range found {
		if filepath.Base(file) != filepath.Base(interpreter) {
			libraries = append(libraries, file)
		}
	}
	sort.Strings(libraries)
	return libraries, interpreter, nil
}

func closure(path string, machine elf.Machine, dirs []string, found map[string]string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read %s as ELF: %w", path, err)
	}
	defer f.Close()
	needed, err := f.DynString(elf.DT_NEEDED)
	if err != nil {
		return fmt.Errorf("read the libraries of %s: %w", path, err)
	}
	search := append(ownDirs(f, path), dirs...)
	for _, name := range needed {
		if found[name] != "" {
			continue
		}
		file := findLibrary(name, machine, search)
		if file == "" {
			return fmt.Errorf("%s needs %s, which is not on this machine", path, name)
		}
		found[name] = file
		if err := closure(file, machine, dirs, found); err != nil {
			return err
		}
	}
	return nil
}

// ownDirs are the search directories that the file itself names.
func ownDirs(f *elf.File, path string) []string {
	var dirs []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		lists, _ := f.DynString(tag)
		for _, list := range lists {
			for _, dir := range strings.Split(list, ":") {
				dir = strings.NewReplacer("$ORIGIN", filepath.Dir(path), "${ORIGIN}", filepath.Dir(path)).Replace(dir)
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

func findLibrary(name string, machine elf.Machine, dirs []string) string {
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		f, err := elf.Open(file)
		if err != nil {
			continue
		}
		fits := f.Machine == machine
		f.Close()
		if fits {
			return file
		}
	}
	return ""
}

// linkerDirs are the directories of ld.so.conf and the built-in ones.
func linkerDirs() []string {
	dirs := readLinkerConf("/etc/ld.so.conf", 0)
	return append(dirs, "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
}

func readLinkerConf(file string, depth int) []string {
	b, err := os.ReadFile(file)
	if err != nil || depth > 4 {
		return nil
	}
	var dirs []string
	for _, line := range strings.Split(string(b), "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if pattern, ok := strings.CutPrefix(line, "include"); ok {
			pattern = strings.TrimSpace(pattern)
			if !filepath.IsAbs(pattern) {
				pattern = filepath.Join(filepath.Dir(file), pattern)
			}
			matches, _ := filepath.Glob(pattern)
			for _, m := range matches {
				dirs = append(dirs, readLinkerConf(m, depth+1)...)
			}
		} else if line != "" {
			dirs = append(dirs, line)
		}
	}
	return dirs
}
