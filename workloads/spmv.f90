! The product of a sparse matrix and a vector, as in the paper on memory access patterns (S. M. Balle and
! S. C. Steely, "Analyzing Memory Access Patterns of Programs on Alpha-based Architectures", Digital Technical
! Journal, 1997): the loop of its Figure 1, spmv_original, and that of its Figure 10, spmv_modified.
!
! The matrix is in stripes. The elements of column j of stripe k1 are AA(k,k1), in the rows ROWIDX(k,k1) of the
! stripe, for k from COLSTR(j,k1) up to COLSTR(j+1,k1)-1.
!
! usage: spmv [CALLS]    calls each of the two CALLS times, and checks that they agree; without CALLS once, and prints figures.

module matrix
   implicit none
#ifdef LARGE
   ! With 15 million elements. The paper has AA(204427,12), which are only 2.5 million: a digit is missing.
   integer, parameter :: n = 75000, stripes = 12, most = 1204427
#else
   integer, parameter :: n = 14000, stripes = 4, most = 511350
#endif
   integer, parameter :: numRows = n / stripes
   real(8), save :: AA(most, stripes), YTEMP(n, stripes), Q(n), P(n)
   integer(4), save :: ROWIDX(most, stripes), COLSTR(n + 1, stripes)
   integer(8), save :: state = 1
contains
   ! A pseudo-random number from 0 to limit-1; the sequence is the same in each run.
   integer function random(limit)
      integer, intent(in) :: limit
      state = iand(state * 1103515245_8 + 12345_8, 2147483647_8)
      random = int(mod(state / 1024, int(limit, 8)))
   end function

   ! Columns have 8 elements or more, and as many as there is room for on average; rows rise.
   subroutine fill()
      integer :: j, k, k1, count, mean, row, step
      do k1 = 1, stripes
         k = 1
         do j = 1, n
            COLSTR(j, k1) = k
            mean = (most - k + 1) / (n - j + 1)
            count = 8 + random(2 * (mean - 8) + 1)
            count = min(count, most - k + 1 - 8 * (n - j))
            step = max(1, numRows / count)
            row = 1 + random(step)
            do k = k, k + count - 1
               AA(k, k1) = 1 + random(9)
               ROWIDX(k, k1) = min(row, numRows)
               row = row + 1 + random(2 * step - 1)
            end do
         end do
         COLSTR(n + 1, k1) = k
      end do
      do j = 1, n
         P(j) = random(100)
      end do
   end subroutine
end module

! Figure 1.
subroutine spmv_original()
   use matrix
   implicit none
   integer :: i, j, k, k1, p1, p2, p3, index
   real(8) :: sum0, sum1, sum2, sum3, x1, x2, x3, x4
   do i = 1, n
      Q(i) = 0
   end do
   do k1 = 1, stripes
      index = (k1 - 1) * numRows
      do j = 1, n
         p1 = COLSTR(j, k1)
         p2 = COLSTR(j + 1, k1) - 1
         p3 = p1 + 4 * ((p2 - p1 + 1) / 4 - 1) - 1
         sum0 = 0
         sum1 = 0
         sum2 = 0
         sum3 = 0
         x1 = P(index + ROWIDX(p1, k1))
         x2 = P(index + ROWIDX(p1 + 1, k1))
         x3 = P(index + ROWIDX(p1 + 2, k1))
         x4 = P(index + ROWIDX(p1 + 3, k1))
         do k = p1, p3, 4
            sum0 = sum0 + AA(k, k1) * x1
            sum1 = sum1 + AA(k + 1, k1) * x2
            sum2 = sum2 + AA(k + 2, k1) * x3
            sum3 = sum3 + AA(k + 3, k1) * x4
            x1 = P(index + ROWIDX(k + 4, k1))
            x2 = P(index + ROWIDX(k + 5, k1))
            x3 = P(index + ROWIDX(k + 6, k1))
            x4 = P(index + ROWIDX(k + 7, k1))
         end do
         do k = p3 + 1, p2
            x1 = P(index + ROWIDX(k, k1))
            sum0 = sum0 + AA(k, k1) * x1
         end do
         YTEMP(j, k1) = sum0 + sum1 + sum2 + sum3
      end do
      do i = 1, n, 4
         Q(i) = Q(i) + YTEMP(i, k1)
         Q(i + 1) = Q(i + 1) + YTEMP(i + 1, k1)
         Q(i + 2) = Q(i + 2) + YTEMP(i + 2, k1)
         Q(i + 3) = Q(i + 3) + YTEMP(i + 3, k1)
      end do
   end do
end subroutine

! Figure 10. Its line 28 has "-sum0", which would not be the product.
subroutine spmv_modified()
   use matrix
   implicit none
   integer :: j, k, k1, p1, p2, p3, index
   real(8) :: sum0, sum1, sum2, sum3, x1, x2, x3, x4
   do k1 = 1, stripes
      index = (k1 - 1) * numRows
      p2 = COLSTR(1, k1) - 1
      do j = 1, n
         p1 = p2 + 1
         p2 = COLSTR(j + 1, k1) - 1
         p3 = p1 + 4 * ((p2 - p1 + 1) / 4 - 1) - 1
         sum0 = 0
         sum1 = 0
         sum2 = 0
         sum3 = 0
         x1 = P(index + ROWIDX(p1, k1))
         x2 = P(index + ROWIDX(p1 + 1, k1))
         x3 = P(index + ROWIDX(p1 + 2, k1))
         x4 = P(index + ROWIDX(p1 + 3, k1))
         do k = p1, p3, 4
            sum0 = sum0 + AA(k, k1) * x1
            sum1 = sum1 + AA(k + 1, k1) * x2
            sum2 = sum2 + AA(k + 2, k1) * x3
            sum3 = sum3 + AA(k + 3, k1) * x4
            x1 = P(index + ROWIDX(k + 4, k1))
            x2 = P(index + ROWIDX(k + 5, k1))
            x3 = P(index + ROWIDX(k + 6, k1))
            x4 = P(index + ROWIDX(k + 7, k1))
         end do
         do k = p3 + 1, p2
            x1 = P(index + ROWIDX(k, k1))
            sum0 = sum0 + AA(k, k1) * x1
         end do
         if (k1 .eq. 1) then
            Q(j) = sum0 + sum1 + sum2 + sum3
         else
            Q(j) = Q(j) + sum0 + sum1 + sum2 + sum3
         end if
      end do
   end do
end subroutine

program spmv
   use matrix
   implicit none
   character(20) :: argument
   integer :: call, calls
   real(8) :: total
   call get_command_argument(1, argument)
   calls = 1
   if (argument /= '') read (argument, *) calls
   call fill()
   do call = 1, calls
      call spmv_original()
   end do
   total = sum(Q)
   do call = 1, calls
      call spmv_modified()
   end do
   if (total /= sum(Q)) error stop 'the products differ'
   if (argument == '') print '(a, i0, a, f0.0)', 'elements: ', int(most, 8) * stripes, ', sum of the product: ', total
end program
