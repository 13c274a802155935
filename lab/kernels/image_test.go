package kernels

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// arm64Image is the smallest Image of arm64: a header, and banners as the kernel has.
func arm64Image(banners string) string {
	b := make([]byte, 0x1000)
	copy(b[0x38:], "ARM\x64")
	return string(b) + "Linux version \x00Linux version %s (%s)\n\x00" + banners
}

func TestIdentify(t *testing.T) {
	for name, c := range map[string]struct{ data, arch, release, want string }{
		"bzImage":    {image("6.18.15-x"), "amd64", "6.18.15-x", ""},
		"Image":      {arm64Image("Linux version 6.18.15-y (somebody) #1\n"), "arm64", "6.18.15-y", ""},
		"no banner":  {arm64Image(""), "", "", "no \"Linux version \" in it"},
		"cut banner": {arm64Image("Linux version 6.18\x00"), "", "", "names no version"},
		"cut header": {image("6.18")[:0x207], "", "", "names no version"},
		"gzip":       {"\x1f\x8b\x08" + strings.Repeat("x", 100), "", "", "compressed as a whole"},
		"zboot":      {"MZ\x00\x00zimg" + strings.Repeat("x", 100), "", "", "compressed as a whole"},
		"text":       {"hello", "", "", "not a bzImage"},
		"empty":      {"", "", "", "not a bzImage"},
	} {
		path := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(path, []byte(c.data), 0o600); err != nil {
			t.Fatal(err)
		}
		a, release, err := identify(path)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err == nil && (a.Name != c.arch || release != c.release) {
			t.Errorf("%s: %s, %q", name, a.Name, release)
		}
	}
}
