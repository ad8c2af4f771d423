package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"
	"time"
)

// The image is an OCI image layout (https://github.com/opencontainers/image-spec, image-layout.md, manifest.md, config.md) in a tar file,
// which has also the manifest.json by which older versions of docker load find their way in it. Neither a registry nor a daemon is needed
// to write it, nor a base image: the programs are static.

const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
	// imageSocket is where the image's driver listens, and its tools look.
	imageSocket = "/run/softvpi/driver.sock"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type imageIndex struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type imageManifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type imageConfig struct {
	Created string `json:"created"`
	platform
	Config execution `json:"config"`
	RootFS rootFS    `json:"rootfs"`
}

type execution struct {
	Env        []string          `json:"Env"`
	Entrypoint []string          `json:"Entrypoint"`
	Cmd        []string          `json:"Cmd"`
	Labels     map[string]string `json:"Labels"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// dockerManifest is an entry of manifest.json.
type dockerManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// imageTag is a version as a tag of an image, which has fewer characters.
func imageTag(version string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, version)
}

// ofImage reports whether something of the packages is in the image: the programs, the libraries that pods get from it, the licences,
// and what it was built of.
func ofImage(e entry) bool {
	switch {
	case strings.HasPrefix(e.to, "lib/softvpi/man/"):
		return false
	case strings.HasPrefix(e.to, "bin/"), strings.HasPrefix(e.to, "lib/softvpi/"):
		return true
	}
	return e.to == licence || e.to == "share/doc/softvpi/notices.txt.gz" || e.to == "share/doc/softvpi/softvpi.cdx.json"
}

// writeImage writes an image of what the packages have.
func writeImage(f *os.File, r release, list []entry) error {
	layer, err := imageLayer(r, list)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(layer); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	w := &imageWriter{tar: tar.NewWriter(f), time: r.time, have: map[string]bool{}}
	at := platform{r.arch, "linux"}
	layers := []descriptor{w.blob(typeLayer, packed.Bytes())}
	config := w.json(typeConfig, imageConfig{
		Created: r.time.UTC().Format(time.RFC3339), platform: at, RootFS: rootFS{"layers", []string{digest(layer)}},
		Config: execution{
			Env:        []string{"PATH=/usr/bin", "SOFTVPI_SOCKET=" + imageSocket, "SOFTVPI_STATE=/var/lib/softvpi"},
			Entrypoint: []string{"/usr/bin/softvpi"}, Cmd: []string{"up"},
			Labels: map[string]string{"org.opencontainers.image.title": "softvpi", "org.opencontainers.image.version": r.version,
				"org.opencontainers.image.licenses": "Apache-2.0"},
		},
	})
	name := "softvpi:" + imageTag(r.version)
	manifest := w.json(typeManifest, imageManifest{2, typeManifest, config, layers})
	manifest.Platform = &at
	manifest.Annotations = map[string]string{"org.opencontainers.image.ref.name": imageTag(r.version), "io.containerd.image.name": "docker.io/library/" + name}
	w.file("index.json", must(imageIndex{2, typeIndex, []descriptor{manifest}}))
	w.file("manifest.json", must([]dockerManifest{{blobPath(config), []string{name}, []string{blobPath(layers[0])}}}))
	w.file("oci-layout", []byte(`{"imageLayoutVersion": "1.0.0"}`+"\n"))
	return w.close()
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func blobPath(d descriptor) string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }

// must encodes what always can be.
func must(x any) []byte {
	b, err := json.Marshal(x)
	if err != nil {
		panic(err)
	}
	return b
}

// imageWriter writes the layout. Its first error is that of close.
type imageWriter struct {
	tar  *tar.Writer
	time time.Time
	have map[string]bool
	err  error
}

func (w *imageWriter) json(mediaType string, x any) descriptor { return w.blob(mediaType, must(x)) }

func (w *imageWriter) blob(mediaType string, b []byte) descriptor {
	d := descriptor{MediaType: mediaType, Digest: digest(b), Size: len(b)}
	w.file(blobPath(d), b)
	return d
}

func (w *imageWriter) file(name string, b []byte) {
	w.directory(path.Dir(name), 0o755)
	w.put(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(b)), Typeflag: tar.TypeReg}, b)
}

// directory writes a directory and those above it, unless they are there.
func (w *imageWriter) directory(name string, mode int64) {
	if name == "." || name == "/" || w.have[name] {
		return
	}
	w.directory(path.Dir(name), 0o755)
	w.have[name] = true
	w.put(&tar.Header{Name: name + "/", Mode: mode, Typeflag: tar.TypeDir}, nil)
}

func (w *imageWriter) put(h *tar.Header, b []byte) {
	if w.err != nil {
		return
	}
	h.ModTime = w.time
	if w.err = w.tar.WriteHeader(h); w.err == nil {
		_, w.err = w.tar.Write(b)
	}
}

func (w *imageWriter) close() error {
	if w.err != nil {
		return w.err
	}
	return w.tar.Close()
}

// imageLayer returns the files of the image.
func imageLayer(r release, list []entry) ([]byte, error) {
	var b bytes.Buffer
	w := &imageWriter{tar: tar.NewWriter(&b), time: r.time, have: map[string]bool{}}
	w.directory("tmp", 0o1777)
	w.directory("run/softvpi", 0o755)
	w.directory("var/lib/softvpi", 0o700)
	for _, e := range list {
		if !ofImage(e) {
			continue
		}
		name := "usr/" + e.to
		w.directory(path.Dir(name), 0o755)
		if e.from == "" {
			w.put(&tar.Header{Name: name, Linkname: e.link, Mode: 0o777, Typeflag: tar.TypeSymlink}, nil)
			continue
		}
		body, err := os.ReadFile(e.from)
		if err != nil {
			return nil, err
		}
		w.put(&tar.Header{Name: name, Mode: int64(e.mode), Size: int64(len(body)), Typeflag: tar.TypeReg}, body)
	}
	if err := w.close(); err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	return b.Bytes(), nil
}
