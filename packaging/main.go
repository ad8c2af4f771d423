// Command packaging makes the packages of SoftVPI from what make package has built: .deb, .rpm, a tar file that works in whatever
// directory it is unpacked, an image for containers, and a zip file for Windows with scripts that install it.
// All but the latter have the same contents, and the same contents give the same bytes. It is in a module of its own,
// since nothing else needs what writes packages.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

// release is what the packages are of.
type release struct {
	version string
	arch    string // as Go calls it
	time    time.Time
}

func run(args []string) error {
	flags := flag.NewFlagSet("packaging", flag.ContinueOnError)
	stage := flags.String("stage", "", "`directory` of what is packed")
	out := flags.String("out", "", "`directory` for the packages")
	version := flags.String("version", "", "`version` of the packages")
	arch := flags.String("arch", "", "`architecture`, as GOARCH")
	epoch := flags.Int64("epoch", 0, "`seconds` since 1970 of all files (SOURCE_DATE_EPOCH)")
	only := flags.String("only", "deb,rpm,tar,image,zip", "`formats` to make, with commas")
	tools := flags.String("tools", "", "`names` of the tools")
	modules := flags.String("modules", "", "`directory` of modules of Go that the programs were built of (GOMODCACHE)")
	goroot := flags.String("goroot", "", "`directory` of Go (GOROOT)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for name, value := range map[string]string{"stage": *stage, "out": *out, "version": *version, "arch": *arch, "tools": *tools,
		"modules": *modules, "goroot": *goroot} {
		if value == "" {
			return fmt.Errorf("-%s is not given", name)
		}
	}
	r := release{*version, *arch, time.Unix(*epoch, 0).UTC()}
	if err := writeOfRelease(*stage, r, sources{*modules, *goroot}); err != nil {
		return err
	}
	list, err := contents(*stage, strings.Fields(*tools))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	formats, err := chosen(*only)
	if err != nil {
		return err
	}
	for _, f := range formats {
		format := allFormats(r)[f]
		path := filepath.Join(*out, format.name)
		if err := write(path, func(f *os.File) error { return format.write(f, r, list) }); err != nil {
			return fmt.Errorf("%s: %w", format.name, err)
		}
		fmt.Println(path)
	}
	return nil
}

// writeOfRelease adds to the stage what follows from the programs in it and the release.
func writeOfRelease(stage string, r release, from sources) error {
	b, err := newBill(r.version, filepath.Join(stage, "softvpi"), filepath.Join(stage, "softvpi-device-plugin"),
		filepath.Join(stage, "softvpi-dra-driver"))
	if err != nil {
		return err
	}
	if err := b.write(filepath.Join(stage, "doc", "softvpi.cdx.json")); err != nil {
		return err
	}
	if err := writeNotices(filepath.Join(stage, "doc", "notices.txt.gz"), b, from); err != nil {
		return err
	}
	if err := writeOfWindows(stage, r, from); err != nil {
		return err
	}
	return writeDebian(filepath.Join(stage, "debian"), r)
}

// format is a kind of package, and the name of its file.
type format struct {
	name  string
	write func(*os.File, release, []entry) error
}

func allFormats(r release) map[string]format {
	return map[string]format{
		"deb": {"softvpi_" + r.version + "_" + r.arch + ".deb", writeDeb}, "rpm": {"softvpi-" + r.version + "-" + rpmRelease + "." + rpmArch(r.arch) + ".rpm", writeRPM},
		"tar":   {"softvpi-" + r.version + "-linux-" + r.arch + ".tar.gz", writeTar},
		"image": {"softvpi-" + r.version + "-linux-" + r.arch + ".oci.tar", writeImage},
		"zip":   {"softvpi-" + r.version + "-windows-amd64.zip", writeZip},
	}
}

// chosen returns the names of formats in a list with commas.
func chosen(list string) ([]string, error) {
	names := strings.Split(list, ",")
	for _, n := range names {
		if _, ok := allFormats(release{})[n]; !ok {
			return nil, fmt.Errorf("-only has %q; allowed: deb, rpm, tar, image, zip", n)
		}
	}
	return names, nil
}

// write makes a file, or none.
func write(path string, fill func(*os.File) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = fill(f)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(path)
	}
	return err
}
