package kernels

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"rota/lab/arch"
)

// maxImage bounds what is read of a kernel's image, in bytes.
const maxImage = 256 << 20

// identify reads from an image which architecture it is for and its release.
func identify(path string) (arch.Arch, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return arch.Arch{}, "", err
	}
	defer f.Close()
	head := make([]byte, 0x8000)
	n, _ := f.ReadAt(head, 0)
	head = head[:n]
	switch {
	case n > 0x206 && string(head[0x202:0x206]) == "HdrS":
		release, err := bzImageRelease(head)
		return arch.AMD64(), release, err
	case n > 0x3c && string(head[0x38:0x3c]) == "ARM\x64":
		release, err := arm64Release(f)
		return arch.ARM64(), release, err
	case bytes.HasPrefix(head, []byte("\x1f\x8b")), n > 8 && string(head[4:8]) == "zimg":
		return arch.Arch{}, "", errors.New("compressed as a whole; give the Image inside it")
	}
	return arch.Arch{}, "", errors.New("not a bzImage of x86 nor an Image of arm64; give the kernel, vmlinuz")
}

// bzImageRelease reads the version string that the boot header points to.
func bzImageRelease(head []byte) (string, error) {
	if len(head) < 0x210 {
		return "", errNoVersion
	}
	at := 0x200 + int(head[0x20e]) + int(head[0x20f])<<8
	if at >= len(head) {
		return "", errNoVersion
	}
	text, _, _ := bytes.Cut(head[at:], []byte{0})
	return firstWord(text)
}

// errNoVersion says that an image is broken.
var errNoVersion = errors.New("its boot header names no version")

// arm64Release finds the banner that the kernel prints first: its header names no
// version.
func arm64Release(image io.ReaderAt) (string, error) {
	data, err := io.ReadAll(io.NewSectionReader(image, 0, maxImage))
	if err != nil {
		return "", err
	}
	const banner = "Linux version "
	for rest := data; ; {
		at := bytes.Index(rest, []byte(banner))
		if at < 0 {
			return "", fmt.Errorf("no %q in it", banner)
		}
		rest = rest[at+len(banner):]
		// The same words, with nothing filled in, are there for other banners.
		if len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' {
			return firstWord(rest[:min(len(rest), 256)])
		}
	}
}

// firstWord is the release at the beginning of a banner.
func firstWord(text []byte) (string, error) {
	release, _, _ := strings.Cut(string(text), " ")
	if release == "" || strings.ContainsAny(release, "/\n\x00") {
		return "", errNoVersion
	}
	return release, nil
}
