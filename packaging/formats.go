package main

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const description = `software VPI adapter and its driver stack
Each port is Ethernet, with RoCE, or InfiniBand, on a machine without such a
card, kernel module or privileges: for developing and testing RDMA programs,
and for rehearsing what networks do to them.`

// maintainerScripts is where what dpkg and RPM run is, in the directory of this program: the same for both, whose words they know.
const maintainerScripts = "scripts/"

func scripts() nfpm.Scripts {
	return nfpm.Scripts{PostInstall: maintainerScripts + "postinst", PreRemove: maintainerScripts + "prerm", PostRemove: maintainerScripts + "postrm"}
}

func writeDeb(f *os.File, r release, list []entry) error {
	list = of(debian, list)
	libc, err := neededLibc(list)
	if libc != "" {
		libc = " (>= " + libc + ")"
	}
	if err != nil {
		return err
	}
	return pack(f, "deb", list, &nfpm.Info{Arch: r.arch, Version: r.version, MTime: r.time,
		Overridables: nfpm.Overridables{Depends: []string{"libc6" + libc}, Scripts: scripts()}})
}

// rpmRelease is how often this version was packed, which RPM wants to know.
const rpmRelease = "1"

func writeRPM(f *os.File, r release, list []entry) error {
	list = of(others, list)
	libc, err := neededLibc(list)
	if libc != "" {
		libc = " >= " + libc
	}
	if err != nil {
		return err
	}
	return pack(f, "rpm", list, &nfpm.Info{Arch: r.arch, Version: r.version, Release: rpmRelease, MTime: r.time, License: "Apache-2.0",
		Overridables: nfpm.Overridables{Depends: []string{"glibc" + libc, "/bin/sh"}, Scripts: scripts(), RPM: nfpm.RPM{
			BuildHost: "softvpi", Group: "System Environment/Daemons", Summary: "Software VPI adapter and its driver stack"}}})
}

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

// pack writes a package of a distribution. The information has what differs between them; both need the C library, for the libraries in C.
func pack(w io.Writer, format string, list []entry, info *nfpm.Info) error {
	info.Name, info.Platform, info.VersionSchema, info.Section, info.Priority = "softvpi", "linux", "none", "net", "optional"
	info.Maintainer, info.Vendor, info.Homepage, info.Description = maintainer, "SoftVPI", homepage, description
	for _, e := range list {
		c := &files.Content{Source: e.from, Destination: "/usr/" + e.to, FileInfo: &files.ContentFileInfo{Mode: e.mode, MTime: info.MTime}}
		if e.from == "" {
			c.Source, c.Type = e.link, files.TypeSymlink
		}
		if format == "rpm" && c.Type == "" {
			c.Type = kindInRPM(e.to)
		}
		info.Contents = append(info.Contents, c)
	}
	if format == "rpm" { // dpkg knows by itself which directories were made for a package
		for _, d := range ownDirectories(list) {
			info.Contents = append(info.Contents, &files.Content{Destination: "/usr/" + d, Type: files.TypeDir,
				FileInfo: &files.ContentFileInfo{Mode: 0o755, MTime: info.MTime}})
		}
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

// ownDirectories returns the directories that are there for this package alone, in order.
func ownDirectories(list []entry) (out []string) {
	for _, e := range list {
		for d := path.Dir(e.to); strings.Contains(strings.ToLower(d), "softvpi"); d = path.Dir(d) {
			out = append(out, d)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// kindInRPM returns how RPM is told of a document, which may be left out where it is installed, and of a licence, which may not.
func kindInRPM(to string) string {
	switch {
	case to == licence, strings.HasPrefix(to, "share/doc/softvpi/notices."):
		return files.TypeRPMLicense
	case strings.HasPrefix(to, "share/doc/"), strings.HasPrefix(to, "share/man/"):
		return files.TypeRPMDoc
	}
	return files.TypeFile
}

// writeTar writes the files below a directory with the version in its name.
func writeTar(f *os.File, r release, list []entry) error {
	z := gzip.NewWriter(f)
	t := tar.NewWriter(z)
	for _, e := range of(others, list) {
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
