! Walks through a matrix, whose columns Fortran keeps together.
module matrices
   implicit none
   integer, parameter :: rows = 512, columns = 64
   real(8), save :: matrix(rows, columns)
contains
   subroutine store_by_columns() bind(c)
      integer :: i, j
      do j = 1, columns
         do i = 1, rows
            matrix(i, j) = i
         end do
      end do
   end subroutine

   subroutine store_by_rows() bind(c)
      integer :: i, j
      do i = 1, rows
         do j = 1, columns
            matrix(i, j) = j
         end do
      end do
   end subroutine

   real(8) function load_by_columns() bind(c)
      integer :: i, j
      load_by_columns = 0
      do j = 1, columns
         do i = 1, rows
            load_by_columns = load_by_columns + matrix(i, j)
         end do
      end do
   end function

   real(8) function load_by_rows() bind(c)
      integer :: i, j
      load_by_rows = 0
      do i = 1, rows
         do j = 1, columns
            load_by_rows = load_by_rows + matrix(i, j)
         end do
      end do
   end function
end module

program walks
   use matrices
   implicit none
   call store_by_columns()
   call store_by_rows()
   print *, load_by_columns(), load_by_rows()
end program
