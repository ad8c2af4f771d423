package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	maintainer = "SoftVPI <softvpi@users.noreply.github.com>"
	homepage   = "https://github.com/softvpi/softvpi"
)

// copyright is in the format that Debian's policy asks for (12.5; copyright-format 1.0): every Debian system has the licence itself.
const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: SoftVPI
Source: ` + homepage + `

Files: *
Copyright: 2026 the authors of SoftVPI
License: Apache-2.0
Comment: The programs contain modules of others, which softvpi.cdx.json lists.
 Their notices and licences are in notices.txt.gz.

License: Apache-2.0
 Licensed under the Apache License, Version 2.0 (the "License"); you may not
 use this software except in compliance with the License.
 .
 Unless required by applicable law or agreed to in writing, software
 distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
 WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
 License for the specific language governing permissions and limitations.
 .
 On Debian systems the License is in /usr/share/common-licenses/Apache-2.0.
`

// overrides are what lintian finds and is to be so.
const overrides = `# The programs run on every system with the kernel, and in containers with nothing below, so that nothing is linked at run time.
softvpi: statically-linked-binary [usr/bin/softvpi]
softvpi: statically-linked-binary [usr/bin/softvpi-device-plugin]
`

// writeDebian writes what only packages for Debian have, into a directory.
func writeDebian(dir string, r release) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	changelog, err := packedText(fmt.Sprintf("softvpi (%s) unstable; urgency=medium\n\n  * Made of the sources of this version.\n\n -- %s  %s\n",
		r.version, maintainer, r.time.UTC().Format(time.RFC1123Z)))
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"copyright": []byte(copyright), "overrides": []byte(overrides), "changelog.gz": changelog} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// packedText packs a text as gzip -9n does, without a time and a name.
func packedText(text string) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write([]byte(text)); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}
