	# A function that begins where its section does, code without any symbol behind it, a function whose
	# label has no type, and one with a name as Rust's compiler makes them.
	.set noreorder
	.section .text.startup,"ax",@progbits
first:
	.globl main
	.type main,@function
main:
	lda $1,0($26)
	bsr $26,$nameless
	bsr $26,untyped
	bsr $26,_ZN4demo4Shop4sell17h0123456789abcdefE
	lda $26,0($1)
	lda $0,0($31)
	ret $31,($26),1
	.size main,.-main
$nameless:
	nop
	ret $31,($26),1
untyped:
	nop
	nop
	ret $31,($26),1
	.type _ZN4demo4Shop4sell17h0123456789abcdefE,@function
_ZN4demo4Shop4sell17h0123456789abcdefE:
	nop
	nop
	nop
	ret $31,($26),1
	.size _ZN4demo4Shop4sell17h0123456789abcdefE,.-_ZN4demo4Shop4sell17h0123456789abcdefE
	.section .note.GNU-stack,"",@progbits
