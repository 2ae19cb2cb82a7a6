/* lwIP with what our stack has: the same buffers, the same options of TCP, the same timers, and its fastest sum. */
#ifndef NETWORK_LWIPOPTS_H
#define NETWORK_LWIPOPTS_H

#define NO_SYS 1 /* One thread, as ours. */
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0
#define LWIP_UDP 1
#define LWIP_ICMP 1
#define LWIP_STATS 0

#define MEM_ALIGNMENT 8
#define MEM_LIBC_MALLOC 1 /* Its own heap searches from the first block. */
#define ETH_PAD_SIZE 2    /* As ETHER_ALIGN. */

#define TCP_MSS 1460
#define TCP_WND 262144
#define TCP_SND_BUF 262144
#define TCP_SND_QUEUELEN 1024
#define TCP_SNDLOWAT 32768 /* At most 16 bits. */
#define LWIP_WND_SCALE 1
#define TCP_RCV_SCALE 3
#define LWIP_TCP_TIMESTAMPS 1
#define TCP_QUEUE_OOSEQ 1
#define TCP_TMR_INTERVAL 40 /* Delayed acknowledgements. */
#define TCP_SLOW_INTERVAL 80
#define TCP_MSL 100

#define PBUF_POOL_SIZE 1024
#define PBUF_POOL_BUFSIZE 1600 /* A packet is in one pbuf. */
#define MEMP_NUM_TCP_SEG 1024
#define MEMP_NUM_PBUF 1024

#define LWIP_CHECKSUM_CTRL_PER_NETIF 1
#define LWIP_CHKSUM_ALGORITHM 3

#endif
