// A 2:1 incast of UDP over a router in ns-3: what a packet costs another simulator, without acknowledgements, pauses and congestion
// control. Prints how many packets have arrived.
//
//   peer MILLISECONDS
#include <cstdlib>
#include <iostream>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

int main(int argc, char** argv) {
  const double ms = argc > 1 ? std::atof(argv[1]) : 10;
  NodeContainer nodes;
  nodes.Create(4); // two senders, the router, the receiver
  PointToPointHelper link;
  link.SetDeviceAttribute("DataRate", StringValue("40Gbps"));
  link.SetChannelAttribute("Delay", StringValue("1us"));
  link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("32MB"));
  InternetStackHelper stack;
  stack.Install(nodes);
  Ipv4AddressHelper address;
  Ipv4Address receiver;
  const int ends[][2] = {{0, 2}, {1, 2}, {3, 2}};
  for (int i = 0; i < 3; i++) {
    NetDeviceContainer devices = link.Install(nodes.Get(ends[i][0]), nodes.Get(ends[i][1]));
    address.SetBase(("10.0." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
    receiver = address.Assign(devices).GetAddress(0);
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  PacketSinkHelper sinks("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 4791));
  Ptr<PacketSink> sink = DynamicCast<PacketSink>(sinks.Install(nodes.Get(3)).Get(0));
  OnOffHelper sources("ns3::UdpSocketFactory", InetSocketAddress(receiver, 4791));
  sources.SetConstantRate(DataRate("18.5Gbps"), 1024);
  sources.Install(nodes.Get(0));
  sources.Install(nodes.Get(1));
  Simulator::Stop(MicroSeconds(static_cast<uint64_t>(ms * 1000)));
  Simulator::Run();
  std::cout << sink->GetTotalRx() / 1024 << std::endl;
  Simulator::Destroy();
}
