// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The CRC-32 of the crypto API by carry-less multiplication, for a user-mode kernel.
 *
 * An ordinary x86 kernel computes Soft-RoCE's ICRC in this way. Kconfig offers it to no
 * other architecture, and the table-driven code is several times slower. The host
 * preserves a user-mode kernel's vector registers across signals, as it does for any
 * process, so nothing has to be saved here.
 *
 * The work is done by crc32_pclmul_le_16 of the kernel's own
 * arch/x86/crypto/crc32-pclmul_asm.S: whole aligned blocks of 16 bytes, at least four.
 */
#include <crypto/internal/hash.h>
#include <linux/crc32.h>
#include <linux/linkage.h>
#include <linux/module.h>
#include <asm/unaligned.h>

asmlinkage u32 crc32_pclmul_le_16(const u8 *buffer, size_t len, u32 crc);

enum { BLOCK = 16, LEAST = 4 * BLOCK };

static u32 crc32_fast(u32 crc, const u8 *p, size_t n)
{
	size_t head = -(uintptr_t)p & (BLOCK - 1), whole;

	if (n < LEAST + BLOCK)
		return crc32_le(crc, p, n);
	crc = crc32_le(crc, p, head);
	p += head;
	n -= head;
	whole = n & ~(size_t)(BLOCK - 1);
	crc = crc32_pclmul_le_16(p, whole, crc);
	return crc32_le(crc, p + whole, n - whole);
}

static int seed(struct crypto_tfm *tfm)
{
	*(u32 *)crypto_tfm_ctx(tfm) = 0;
	return 0;
}

static int setkey(struct crypto_shash *tfm, const u8 *key, unsigned int len)
{
	if (len != sizeof(u32))
		return -EINVAL;
	*(u32 *)crypto_shash_ctx(tfm) = get_unaligned_le32(key);
	return 0;
}

static int init(struct shash_desc *d)
{
	*(u32 *)shash_desc_ctx(d) = *(u32 *)crypto_shash_ctx(d->tfm);
	return 0;
}

static int update(struct shash_desc *d, const u8 *p, unsigned int n)
{
	u32 *crc = shash_desc_ctx(d);

	*crc = crc32_fast(*crc, p, n);
	return 0;
}

static int final(struct shash_desc *d, u8 *out)
{
	put_unaligned_le32(*(u32 *)shash_desc_ctx(d), out);
	return 0;
}

static struct shash_alg alg = {
	.digestsize = sizeof(u32),
	.descsize = sizeof(u32),
	.init = init,
	.update = update,
	.final = final,
	.setkey = setkey,
	.base = {
		.cra_name = "crc32",
		.cra_driver_name = "crc32-pclmul-um",
		.cra_priority = 200,
		.cra_flags = CRYPTO_ALG_OPTIONAL_KEY,
		.cra_blocksize = 1,
		.cra_ctxsize = sizeof(u32),
		.cra_init = seed,
		.cra_module = THIS_MODULE,
	},
};

/* agrees compares the fast CRC with the plain one, at every alignment. */
static bool agrees(void)
{
	static u8 bytes[300];
	size_t at, n;

	for (at = 0; at < sizeof(bytes); at++)
		bytes[at] = at * 131 + 7;
	for (at = 0; at < BLOCK; at++)
		for (n = 0; n < sizeof(bytes) - BLOCK; n++)
			if (crc32_fast(~0, bytes + at, n) != crc32_le(~0, bytes + at, n))
				return false;
	return true;
}

static int __init crc32_um_init(void)
{
	if (!agrees()) {
		pr_err("crc32-pclmul-um: wrong sums, not used\n");
		return -ENODEV;
	}
	return crypto_register_shash(&alg);
}
subsys_initcall(crc32_um_init);

MODULE_LICENSE("GPL");
MODULE_ALIAS_CRYPTO("crc32");
