//go:build !amd64

package ib

// ICRCPieces continues the ICRC over headers and then the payload, as two calls of ICRCUpdate do.
func ICRCPieces(crc uint32, headers, payload []byte) uint32 {
	return ICRCUpdate(ICRCUpdate(crc, headers), payload)
}

func icrcShort(crc uint32, p []byte) uint32 { return icrcSlices(crc, p) }
