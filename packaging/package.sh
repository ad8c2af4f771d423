#!/bin/sh
# package.sh REVISION [FORMATS]: lays out what the packages install in bin/package/stage, and packs it.
set -eu
revision=${1:-0}
out=bin/package stage=bin/package/stage
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
version=${VERSION:-0~$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d).$(echo "$revision" | tr -c 'a-z0-9\n' .)}

rm -rf "$out"
mkdir -p $stage/clib $stage/man $stage/bash $stage/zsh $stage/fish $stage/service $stage/system $stage/sysusers $stage/catalog $stage/powershell $stage/doc
CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.revision=$revision" -o $stage/softvpi ./cmd/softvpi
CGO_ENABLED=0 go build -C deviceplugin -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$PWD/$stage/softvpi-device-plugin" .
CGO_ENABLED=0 go build -C deviceplugin -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$PWD/$stage/softvpi-dra-driver" ./dra
if command -v "${CC:-cc}" >/dev/null; then
	make -s clib
	cp bin/clib/*.so* $stage/clib
	! command -v strip >/dev/null || strip --strip-unneeded --remove-section=.comment $stage/clib/*
else
	echo "package: without the C libraries, which want a C compiler (cc)" >&2
fi
case ",${2:-zip}," in
*,zip,*) # without the profile of cmd/softvpi: with it go compiles every package once more
	mkdir -p $stage/windows
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go build -trimpath -buildvcs=false -pgo=off -ldflags "-s -w -X main.revision=$revision" \
		-o $stage/windows/softvpi.exe ./cmd/softvpi
	cp packaging/windows/*.ps1 $stage/windows
	;;
esac
$stage/softvpi man --directory $stage/man >/dev/null
$stage/softvpi-device-plugin -man >$stage/man/softvpi-device-plugin.1
gzip -9n $stage/man/*
$stage/softvpi completion bash >$stage/bash/softvpi
$stage/softvpi completion zsh >$stage/zsh/_softvpi
$stage/softvpi completion fish >$stage/fish/softvpi.fish
$stage/softvpi setup unit --program /usr/bin/softvpi >$stage/service/softvpi.service
$stage/softvpi setup unit --kind socket >$stage/service/softvpi.socket
$stage/softvpi setup unit --kind system-service --program /usr/bin/softvpi >$stage/system/softvpi.service
$stage/softvpi setup unit --kind system-socket >$stage/system/softvpi.socket
$stage/softvpi setup unit --kind system-function-socket >$stage/system/softvpi-function@.socket
$stage/softvpi setup unit --kind sysusers >$stage/sysusers/softvpi.conf
$stage/softvpi setup unit --kind catalog >$stage/catalog/softvpi.catalog
$stage/softvpi ps --module $stage/powershell >/dev/null
# The examples in Go are no packages of the sources once more, for go test ./... and whatever else takes all: this is a module of its own.
echo "module laid.out" >$stage/go.mod
cp -r README.md docs examples $stage/doc
cp LICENSE $stage/doc
go run -C packaging . -stage "$PWD/$stage" -out "$PWD/$out" -version "$version" -arch "$(go env GOARCH)" \
	-modules "$(go env GOMODCACHE)" -goroot "$(go env GOROOT)" -epoch "$SOURCE_DATE_EPOCH" -only "${2:-deb,rpm,tar,image,zip}" -tools "$($stage/softvpi tools list | tr '\n' ' ')"
