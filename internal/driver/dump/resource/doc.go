// Package resource is the resource dump of an adapter: objects by their numbers, with those that they refer to, in the segments of mlx5
// devices (WinOF-2 24.4, VF Monitoring, names the command; the segments are those of Linux, include/linux/mlx5/mlx5_ifc.h, and of
// mstflint's mstresourcedump and mstresourceparse, which read these files). A file is big-endian dwords. Each segment begins with its
// length in dwords and its type; what an object's segment has after that is a record of the register space (package register).
package resource
