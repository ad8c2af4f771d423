// Package raw is the function of a port that raw packet queue pairs use: it steers frames to them by the rules of their flows,
// and sends what they post (ibv_create_flow; IBV_QPT_RAW_PACKET). What is neither matched by a rule, nor RoCE of an RDMA
// function, is left to the Ethernet function at the port.
//
// Like every function it is driven: the port's loop calls it, and nothing in it blocks or reads a clock.
package raw
