package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// untar returns the files of a tar file by their names; links begin with "-> ".
func untar(t *testing.T, b []byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := out[h.Name]; twice {
			t.Errorf("%s is there twice", h.Name)
		}
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 1e9 {
			t.Errorf("%s: owner %d:%d, time %v", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		if h.Typeflag == tar.TypeSymlink {
			body = []byte("-> " + h.Linkname)
		}
		out[h.Name] = string(body)
	}
}

// decode reads the JSON of a descriptor's blob, whose size and digest have to be as it says.
func decode(t *testing.T, files map[string]string, d descriptor, to any) {
	t.Helper()
	b, ok := files[blobPath(d)]
	if !ok || len(b) != d.Size || digest([]byte(b)) != d.Digest {
		t.Fatalf("%+v: there %v, %d bytes, %s", d, ok, len(b), digest([]byte(b)))
	}
	if to == nil {
		return
	}
	if err := json.Unmarshal([]byte(b), to); err != nil {
		t.Fatal(err)
	}
}

// TestImage_Layout: from the index every blob is found with its size and digest, none is there that is not found, the layer's digest
// unpacked is the configuration's, and docker's manifest names the same blobs (image-spec, image-layout.md and config.md).
func TestImage_Layout(t *testing.T) {
	b, _ := packed(t, writeImage)
	files := untar(t, b)
	var layout struct{ ImageLayoutVersion string }
	var index imageIndex
	if err := errors.Join(json.Unmarshal([]byte(files["oci-layout"]), &layout), json.Unmarshal([]byte(files["index.json"]), &index)); err != nil {
		t.Fatal(err)
	}
	if layout.ImageLayoutVersion != "1.0.0" || index.SchemaVersion != 2 || len(index.Manifests) != 1 {
		t.Fatalf("%+v %+v", layout, index)
	}
	var manifest imageManifest
	var config imageConfig
	decode(t, files, index.Manifests[0], &manifest)
	decode(t, files, manifest.Config, &config)
	decode(t, files, manifest.Layers[0], nil)
	blobs := 0
	for name := range files {
		if strings.HasPrefix(name, "blobs/sha256/") && !strings.HasSuffix(name, "/") {
			blobs++
		}
	}
	if blobs != 3 || len(manifest.Layers) != 1 {
		t.Errorf("%d blobs, %d layers", blobs, len(manifest.Layers))
	}
	z, err := gzip.NewReader(strings.NewReader(files[blobPath(manifest.Layers[0])]))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(z)
	if err != nil || !slices.Equal(config.RootFS.DiffIDs, []string{digest(layer)}) {
		t.Errorf("%v, %v", config.RootFS, err)
	}
	var docker []dockerManifest
	if err := json.Unmarshal([]byte(files["manifest.json"]), &docker); err != nil || len(docker) != 1 ||
		docker[0].Config != blobPath(manifest.Config) || !slices.Equal(docker[0].Layers, []string{blobPath(manifest.Layers[0])}) ||
		!slices.Equal(docker[0].RepoTags, []string{"softvpi:1"}) {
		t.Errorf("%+v, %v", docker, err)
	}
	root := untar(t, layer)
	if config.OS != "linux" || config.Architecture != "amd64" || !slices.Equal(config.Config.Cmd, []string{"up"}) ||
		root[strings.TrimPrefix(config.Config.Entrypoint[0], "/")] != "softvpi" {
		t.Errorf("%+v", config)
	}
	for name, want := range map[string]string{"usr/bin/softvpi-device-plugin": "softvpi-device-plugin",
		"usr/bin/softvpi-dra-driver": "softvpi-dra-driver", "usr/bin/vstat": "-> softvpi",
		"usr/lib/softvpi/libibverbs.so.1": "clib/libibverbs.so.1", "usr/share/doc/softvpi/LICENSE": "doc/LICENSE"} {
		if root[name] != want {
			t.Errorf("%s is %q, want %q", name, root[name], want)
		}
	}
	if _, ok := root["usr/share/man/man1/softvpi.1.gz"]; ok {
		t.Error("manual pages are in the image")
	}
	if _, ok := root["tmp/"]; !ok {
		t.Error("there is no /tmp")
	}
}

// TestImageTag: a version is a tag without the characters that tags have not.
func TestImageTag(t *testing.T) {
	if got := imageTag("0~20261127.53fdbbf0.dirty+1"); got != "0-20261127.53fdbbf0.dirty-1" {
		t.Error(got)
	}
}

// TestImage_Loads: podman, where it is, loads the image into a store of the test's own. (That of a docker daemon is not the test's.)
func TestImage_Loads(t *testing.T) {
	podman, err := exec.LookPath("podman")
	if err != nil {
		t.Skip("needs podman")
	}
	b, _ := packed(t, writeImage)
	dir := t.TempDir()
	file := filepath.Join(dir, "image.tar")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(podman, "--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"), "--storage-driver", "vfs", "load", "-i", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "softvpi") {
		t.Errorf("%v\n%s", err, out)
	}
}
