package initramfs

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/therootcompany/xz"
)

// maxModule bounds one decompressed module, in bytes.
const maxModule = 64 << 20

// AddModules copies the named modules of dir (".../lib/modules/RELEASE") and
// everything they depend on to /lib/modules, decompressed. It returns the
// guest paths in the order in which they must be loaded. A module built into
// the kernel needs nothing. Parameters follow a name after a space, and its
// path too.
func (im *Image) AddModules(dir string, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	if dir == "" {
		return nil, fmt.Errorf("module %q: this kernel came without modules; take another, such as 6.18", names[0])
	}
	files, err := moduleFiles(dir)
	if err != nil {
		return nil, err
	}
	builtin := builtinModules(dir)
	var order []string
	done := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		name = moduleName(name)
		if done[name] || builtin[name] {
			return nil
		}
		done[name] = true
		file, there := files[name]
		if !there {
			return fmt.Errorf("module %q: not in kernel %s; take a kernel that has it, such as 6.18-binder", name, filepath.Base(dir))
		}
		data, err := readModule(file)
		if err != nil {
			return fmt.Errorf("module %q: %w", name, err)
		}
		depends, err := moduleDepends(data)
		if err != nil {
			return fmt.Errorf("module %q: %w", name, err)
		}
		for _, d := range depends {
			if err := add(d); err != nil {
				return fmt.Errorf("module %q needs: %w", name, err)
			}
		}
		guest := "/lib/modules/" + name + ".ko"
		order = append(order, guest)
		return im.Add(guest, 0o644, data)
	}
	for _, name := range names {
		name, parameters, _ := strings.Cut(name, " ")
		before := len(order)
		if err := add(name); err != nil {
			return nil, err
		}
		if len(order) > before && parameters != "" {
			order[len(order)-1] += " " + parameters
		}
	}
	return order, nil
}

// LacksModule names the first of the modules that dir, as of AddModules, does not have and that is
// not built into the kernel either, "" when there is none.
func LacksModule(dir string, names []string) (string, error) {
	if len(names) == 0 {
		return "", nil
	}
	if dir == "" {
		return names[0], nil
	}
	files, err := moduleFiles(dir)
	if err != nil {
		return "", err
	}
	builtin := builtinModules(dir)
	for _, name := range names {
		name, _, _ := strings.Cut(name, " ")
		_, there := files[moduleName(name)]
		if !there && !builtin[moduleName(name)] {
			return name, nil
		}
	}
	return "", nil
}

// moduleName is the name in the kernel's form: underscores, no suffixes.
func moduleName(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

func moduleFiles(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(filepath.Join(dir, "kernel"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(d.Name(), ".ko") {
			files[moduleName(path)] = path
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("modules of the kernel: %w", err)
	}
	return files, nil
}

func builtinModules(dir string) map[string]bool {
	b, _ := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	builtin := map[string]bool{}
	for _, line := range strings.Fields(string(b)) {
		builtin[moduleName(line)] = true
	}
	return builtin
}

func readModule(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	switch {
	case strings.HasSuffix(file, ".xz"):
		if r, err = xz.NewReader(f, xz.DefaultDictMax); err != nil {
			return nil, err
		}
	case !strings.HasSuffix(file, ".ko"):
		return nil, fmt.Errorf("%s: unknown compression; .ko and .ko.xz are known", filepath.Base(file))
	}
	data, err := io.ReadAll(io.LimitReader(r, maxModule+1))
	if err == nil && len(data) > maxModule {
		err = fmt.Errorf("larger than %d MiB", maxModule>>20)
	}
	return data, err
}

// moduleDepends reads the "depends=" of the module's own description: Debian
// makes modules.dep at installation only.
func moduleDepends(module []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("no .modinfo section: not a kernel module")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for _, field := range strings.Split(string(info), "\x00") {
		if list, ok := strings.CutPrefix(field, "depends="); ok && list != "" {
			return strings.Split(list, ","), nil
		}
	}
	return nil, nil
}
