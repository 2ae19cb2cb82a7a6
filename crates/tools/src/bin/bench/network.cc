// Packets over a link between two nodes of ns-3: the peer of the models of adapters. Arguments: packets, bytes of each.
#include <ns3/core-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static uint64_t left, received;
static uint32_t size;
static ns3::Ptr<ns3::NetDevice> sender, receiver;

static void Send() {
    sender->Send(ns3::Create<ns3::Packet>(size), receiver->GetAddress(), 0x0800);
}

static bool Receive(ns3::Ptr<ns3::NetDevice>, ns3::Ptr<const ns3::Packet>, uint16_t, const ns3::Address &) {
    received++;
    if (left > 0) {
        left--;
        Send();
    }
    return true;
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    left = strtoull(arguments[1], nullptr, 10);
    size = strtoul(arguments[2], nullptr, 10);
    ns3::NodeContainer nodes;
    nodes.Create(2);
    ns3::PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", ns3::StringValue("599040kbps"));
    link.SetDeviceAttribute("Mtu", ns3::UintegerValue(65535));
    link.SetChannelAttribute("Delay", ns3::StringValue("1us"));
    ns3::NetDeviceContainer devices = link.Install(nodes);
    sender = devices.Get(0);
    receiver = devices.Get(1);
    receiver->SetReceiveCallback(ns3::MakeCallback(&Receive));
    uint64_t packets = left;
    for (int window = 0; window < 16 && left > 0; window++) {
        left--;
        ns3::Simulator::ScheduleNow(&Send);
    }
    ns3::Simulator::Run();
    bool all = received == packets;
    printf("%llu\n", (unsigned long long)ns3::Simulator::GetEventCount());
    ns3::Simulator::Destroy();
    return all ? 0 : 1;
}
