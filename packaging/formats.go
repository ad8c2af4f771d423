package main

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const description = `software VPI adapter and its driver stack
Each port is Ethernet, with RoCE, or InfiniBand, on a machine without such a
card, kernel module or privileges: for developing and testing RDMA programs,
and for rehearsing what networks do to them.`

func writeDeb(f *os.File, r release, list []entry) error { return pack(f, "deb", r, list, "libc6") }

func writeRPM(f *os.File, r release, list []entry) error { return pack(f, "rpm", r, list, "glibc") }

// rpmArch returns how RPM calls an architecture of Go.
func rpmArch(arch string) string {
	switch arch {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return arch
}

// pack writes a package of a distribution; libc is its package of the C library, which the libraries in C need.
func pack(w io.Writer, format string, r release, list []entry, libc string) error {
	info := &nfpm.Info{
		Name: "softvpi", Arch: r.arch, Platform: "linux", Version: r.version, VersionSchema: "none", Section: "net", Priority: "optional",
		Maintainer: "SoftVPI <softvpi@users.noreply.github.com>", Vendor: "SoftVPI", Homepage: "https://github.com/softvpi/softvpi",
		License: "Apache-2.0", Description: description, MTime: r.time,
		Overridables: nfpm.Overridables{Depends: []string{libc}, RPM: nfpm.RPM{BuildHost: "softvpi"}},
	}
	for _, e := range list {
		c := &files.Content{Source: e.from, Destination: "/usr/" + e.to, FileInfo: &files.ContentFileInfo{Mode: e.mode, MTime: r.time}}
		if e.from == "" {
			c.Source, c.Type = e.link, files.TypeSymlink
		}
		info.Contents = append(info.Contents, c)
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	p, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	return p.Package(info, w)
}

// writeTar writes the files below a directory with the version in its name.
func writeTar(f *os.File, r release, list []entry) error {
	z := gzip.NewWriter(f)
	t := tar.NewWriter(z)
	for _, e := range list {
		h := &tar.Header{Name: "softvpi-" + r.version + "/" + e.to, Mode: int64(e.mode), ModTime: r.time, Linkname: e.link, Typeflag: tar.TypeReg}
		var body []byte
		if e.from == "" {
			h.Typeflag, h.Mode = tar.TypeSymlink, 0o777
		} else {
			var err error
			if body, err = os.ReadFile(e.from); err != nil {
				return err
			}
			h.Size = int64(len(body))
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(body); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}
