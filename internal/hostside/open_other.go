//go:build !linux

package hostside

func openTAP(string) (End, error) { return nil, errSystem }

func openSocket(string, string) (End, error) { return nil, errSystem }

func listen(string) (End, error) { return nil, errSystem }
